/* Asks the vGPU server to register this container: one frame each way over a unix socket. Who we
 * are it reads from the kernel (SO_PEERCRED, cgroup), never from the frame. The socket is closed
 * before the call returns. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "session/session.h"

#define LIBRARY_VERSION 1

uint64_t vg_wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t vg_pid(void)
{
    return (uint64_t)syscall(SYS_getpid);
}

bool vg_gone(uint64_t pid)
{
    int kept = errno;
    bool gone = !pid || pid > INT32_MAX || (kill((pid_t)pid, 0) && errno == ESRCH);
    errno = kept;
    return gone;
}

static struct vg_outcome again(const char *what)
{
    struct vg_outcome outcome = {.kind = VG_AGAIN};
    snprintf(outcome.text, sizeof outcome.text, "%s: %s", what, strerror(errno));
    return outcome;
}

/* SO_RCVTIMEO and SO_SNDTIMEO: a wait that needs no signal; false where the time is over. */
static bool wait_until(int fd, int option, uint64_t deadline)
{
    uint64_t now = vg_wall_ns();
    if (now >= deadline)
        return false;
    uint64_t left = (deadline - now) / 1000 + 1;
    struct timeval time = {(time_t)(left / 1000000), (suseconds_t)(left % 1000000)};
    return !setsockopt(fd, SOL_SOCKET, option, &time, sizeof time);
}

static struct vg_outcome talk(int fd, uint32_t driver_version, uint64_t deadline)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *folder = vg_folder();
    if (!folder || snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder) >=
                       (int)sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return again("socket");
    }
    struct vg_frame frame = {
        .magic = VG_FRAME_MAGIC,
        .abi = VG_ABI,
        .operation = VG_OP_REGISTER,
        .pid = vg_pid(),
        .driver_version = driver_version,
        .library_version = LIBRARY_VERSION,
    };
    ssize_t done;
    do {
        if (!wait_until(fd, SO_SNDTIMEO, deadline))
            return again("socket");
        done = connect(fd, (const struct sockaddr *)&address, sizeof address);
    } while (done && errno == EINTR);
    if (done)
        return again("socket");
    do {
        if (!wait_until(fd, SO_SNDTIMEO, deadline))
            return again("socket");
        done = send(fd, &frame, sizeof frame, MSG_NOSIGNAL);
    } while (done < 0 && errno == EINTR);
    if (done != sizeof frame)
        return again("socket");
    do {
        if (!wait_until(fd, SO_RCVTIMEO, deadline))
            return again("socket");
        done = recv(fd, &frame, sizeof frame, 0);
    } while (done < 0 && errno == EINTR);
    if (done < 0)
        return again("socket");
    struct vg_outcome outcome = {.kind = VG_FAILED};
    if (done != sizeof frame || frame.magic != VG_FRAME_MAGIC || frame.abi != VG_ABI) {
        /* A server that goes away closes the connection: then the next one may answer. */
        outcome.kind = done ? VG_FAILED : VG_AGAIN;
        snprintf(outcome.text, sizeof outcome.text,
                 "the vGPU server gave no answer of this version");
        return outcome;
    }
    outcome.kind = frame.operation == VG_REPLY_OK     ? VG_DONE
                   : frame.operation == VG_REPLY_BUSY ? VG_AGAIN
                                                      : VG_FAILED;
    snprintf(outcome.text, sizeof outcome.text, "%.*s", (int)sizeof frame.text, frame.text);
    return outcome;
}

struct vg_outcome vg_register(uint32_t driver_version, uint64_t deadline)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return again("socket");
    struct vg_outcome outcome = talk(fd, driver_version, deadline);
    close(fd);
    return outcome;
}
