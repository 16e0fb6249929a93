"""The API server's address in the node: carries connections from there to the machine's loopback.

So the API server listens on 127.0.0.1 alone, as ever, and a node that dies takes nothing of the
control plane with it. Run as a program: forwarder.py PID PORT ADDRESS...
"""

import asyncio
import contextlib
import ctypes
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_CHUNK = 1 << 16


def listen_inside(pid: int, addresses: Sequence[str], port: int) -> list[socket.socket]:
    """Sockets that listen in another process's network: a socket stays where it was made.

    Raises:
        OSError: The process is gone, or an address is not there.
    """
    home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(there)
        try:
            return [socket.create_server((address, port)) for address in addresses]
        finally:
            _enter(home)
    finally:
        os.close(there)
        os.close(home)


def _enter(namespace: int) -> None:
    # os.setns is of Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


async def serve(listeners: Sequence[socket.socket], port: int) -> None:
    """Carries what comes in to that port of this machine's loopback, for ever."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            try:
                there, back = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return  # the API server is being restarted: the caller tries again
            with contextlib.closing(back):
                # A stream that ends in one direction ends in both: as the API server's do.
                tasks = [asyncio.create_task(_copy(reader, back))]
                tasks.append(asyncio.create_task(_copy(there, writer)))
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    task.cancel()

    servers = [await asyncio.start_server(carry, sock=listener) for listener in listeners]
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()


def command(pid: int, port: int, addresses: Sequence[str]) -> list[str]:
    """The command that runs it."""
    # Isolated, as a file and not as a module: nothing else of Alnair is loaded.
    return [sys.executable, "-I", str(Path(__file__)), str(pid), str(port), *addresses]


if __name__ == "__main__":
    asyncio.run(
        serve(
            listen_inside(int(sys.argv[1]), sys.argv[3:], int(sys.argv[2])),
            int(sys.argv[2]),
        )
    )
