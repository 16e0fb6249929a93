/* The thread of this process that calls host functions, one after the other. It takes part in
 * virtual time, which stands still while a function runs. */
#define _GNU_SOURCE
#include "streams/host_thread.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"
#include "state/process_table.h"

static struct {
    CUhostFn function;
    void *data;
    bool waits;
} *calls; /* that are queued */
static uint32_t rooms;
static pthread_mutex_t calls_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t caller_joined = PTHREAD_COND_INITIALIZER;
static enum { NO_CALLER, STARTING, JOINED } caller;
static pid_t caller_pid;

uint32_t fg_host_call_number(CUhostFn function, void *data)
{
    pthread_mutex_lock(&calls_mutex);
    uint32_t at = 0;
    while (at < rooms && calls[at].waits)
        at++;
    if (at == rooms) {
        rooms = rooms ? 2 * rooms : 64;
        calls = realloc(calls, rooms * sizeof *calls);
        if (!calls)
            abort();
        memset(calls + at, 0, (rooms - at) * sizeof *calls);
    }
    calls[at].function = function;
    calls[at].data = data;
    calls[at].waits = true;
    pthread_mutex_unlock(&calls_mutex);
    return at;
}

static void *call_them(void *unused)
{
    (void)unused;
    fakegpu_join();
    pthread_mutex_lock(&calls_mutex);
    caller = JOINED;
    pthread_cond_broadcast(&caller_joined);
    pthread_mutex_unlock(&calls_mutex);
    for (;;) {
        int stream;
        uint32_t number;
        if (!fg_engine_host_next(fg_own_process(), &stream, &number))
            continue;
        pthread_mutex_lock(&calls_mutex);
        CUhostFn function = calls[number].function;
        void *data = calls[number].data;
        calls[number].waits = false;
        pthread_mutex_unlock(&calls_mutex);
        function(data);
        fg_engine_host_returned(stream);
    }
    return NULL;
}

void fg_host_thread_start(void)
{
    pthread_mutex_lock(&calls_mutex);
    if (caller_pid != getpid())
        caller = NO_CALLER; /* a forked child has no such thread */
    if (caller == NO_CALLER) {
        sigset_t all, before;
        pthread_t thread;
        caller = STARTING;
        caller_pid = getpid();
        sigfillset(&all); /* the application's signals are not for this thread */
        pthread_sigmask(SIG_BLOCK, &all, &before);
        if (pthread_create(&thread, NULL, call_them, NULL))
            abort();
        pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    while (caller != JOINED)
        pthread_cond_wait(&caller_joined, &calls_mutex);
    pthread_mutex_unlock(&calls_mutex);
}
