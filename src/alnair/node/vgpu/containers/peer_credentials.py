"""Who is at the other end of a socket: what the kernel says, held against reuse of its pid.

SO_PEERCRED gives the pid of who connected. Until its control group is read, that process may end
and another get its number, so a pidfd is taken, and after the reading it must still be alive.
SO_PEERPIDFD (Linux 6.5) is of the very process that connected. Before, `pidfd_open` is all there
is, and the peer's end of the socket must still be open, which a process that ended has closed.
"""

import errno
import os
import select
import socket
import struct
from typing import Final

from alnair.node.cgroups import Cgroup, Proc

#: asm-generic/socket.h; Python names it in 3.14.
_SO_PEERPIDFD: Final = 77
_UCRED: Final = struct.Struct("iII")


class UnknownPeerError(Exception):
    """The kernel does not tell who it is; says why."""


def credentials(connection: socket.socket) -> tuple[int, int]:
    """Return (pid, uid) of who connected; a pid of 0 is one that this namespace does not see."""
    pid, uid, _ = _UCRED.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    )
    return pid, uid


def identify(connection: socket.socket, proc: Proc) -> tuple[int, Cgroup]:
    """Return (pid, control group) of who connected.

    Raises:
        UnknownPeerError: It is gone, or in a pid namespace that this process does not see.
    """
    pid, _ = credentials(connection)
    if pid <= 0:
        raise UnknownPeerError(
            "the peer's pid is not visible here: run the agent in the host's pid namespace"
        )
    try:
        fd, is_exact = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD), True
    except OSError as error:
        if error.errno not in {errno.ENOPROTOOPT, errno.EINVAL, errno.EOPNOTSUPP}:
            raise UnknownPeerError(f"process {pid} is gone") from error
        try:
            fd, is_exact = os.pidfd_open(pid), False
        except OSError as failed:
            raise UnknownPeerError(f"process {pid} is gone") from failed
    try:
        place = proc.cgroup(pid)
        if place is None or has_ended(fd) or not (is_exact or _is_open(connection)):
            raise UnknownPeerError(f"process {pid} is gone")
        return pid, place
    finally:
        os.close(fd)


def has_ended(pidfd: int) -> bool:
    """Tell whether the process of a pidfd has ended."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _is_open(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, 0)
    return not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
