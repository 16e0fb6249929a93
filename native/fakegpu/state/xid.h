/* XID events: a log in the shared state that every event set of every process reads from where
 * it was made. It holds the last FG_XIDS; a reader that slept through more misses the oldest. */
#ifndef FG_XID_H
#define FG_XID_H
#include <stdatomic.h>
#include <stdint.h>

#define FG_XIDS 256
struct fg_xid_log {
    /* futex word, too: number of events ever, after the entry itself */
    _Atomic uint32_t written;
    struct {
        int32_t gpu;
        uint32_t xid;
    } entry[FG_XIDS];
};
#endif
