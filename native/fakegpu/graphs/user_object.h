/* User objects, to graphs that hold them. */
#ifndef FG_USER_OBJECT_H
#define FG_USER_OBJECT_H
#include "driver/driver.h"
#include "driver/handles.h"

struct fg_user_object {
    struct fg_handle handle;
    CUhostFn destroy;
    void *data;
    unsigned count;
};
struct fg_user_object *fg_user_object_of(CUuserObject handle); /* NULL: not live */
/* ends it with the last */
void fg_user_object_release(struct fg_user_object *object, unsigned count);
#endif
