/* Size of a module's image on the device. */
#ifndef FG_IMAGE_H
#define FG_IMAGE_H
#include <stdint.h>
uint64_t fg_image_bytes(const void *image); /* 0: no image */
uint64_t fg_image_file_bytes(const char *path);
#endif
