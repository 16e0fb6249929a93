/* GPU time really executed, per tag. */
#ifndef FG_EXECUTED_H
#define FG_EXECUTED_H
void fg_engine_reset_tag(const char *tag); /* counts from now on */
#endif
