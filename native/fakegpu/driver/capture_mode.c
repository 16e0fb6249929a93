#include "driver/capture_mode.h"

static struct fg_capture *captures; /* under way; fg_mutex */
static _Atomic unsigned under_way;  /* how many */
static uint64_t next_id;
static __thread CUstreamCaptureMode thread_mode; /* GLOBAL unless exchanged */

bool fg_captures_under_way(void)
{
    return under_way != 0;
}
struct fg_capture *fg_captures(void)
{
    return captures;
}

struct fg_capture *fg_capture_of_id(uint64_t id)
{
    struct fg_capture *each = captures;
    while (each && each->id != id)
        each = each->next;
    return each;
}

void fg_capture_list(struct fg_capture *capture)
{
    capture->id = ++next_id;
    capture->next = captures;
    captures = capture;
    under_way++;
}

void fg_capture_unlist(struct fg_capture *capture)
{
    struct fg_capture **at = &captures;
    while (*at && *at != capture)
        at = &(*at)->next;
    if (*at)
        *at = capture->next;
    under_way--;
}

CUresult fg_capture_forbids(void)
{
    CUresult result = CUDA_SUCCESS;
    if (!under_way || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return result;
    pthread_mutex_lock(&fg_mutex);
    for (struct fg_capture *each = captures; each; each = each->next) {
        bool own = pthread_equal(each->thread, pthread_self());
        bool counts = own ? each->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                          : each->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                                thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (counts) {
            each->broken = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode *mode)
{
    if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
