#!/usr/bin/env python3
"""Stands in for `nvidia-cuda-mps-control`: the same text protocol, no GPU behind it.

`-f` runs the daemon in the foreground, `-d` in the background; without either, commands from stdin
go to the daemon of CUDA_MPS_PIPE_DIRECTORY and its answers to stdout. Beside NVIDIA's commands it
knows `connect PID UID`, by which a test plays a client. Words in the file `faults` of the pipe
folder:
    no-start   a daemon says that it cannot start, and exits
    die        a daemon exits right after it started
    hang       the daemon takes commands and never answers
    error      every command is refused
    chatter    a list of servers that is none
"""

import contextlib
import fcntl
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PIPE = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
LOG = Path(os.environ.get("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps"))
CONTROL = PIPE / "control"


def fault(word: str) -> bool:
    with contextlib.suppress(OSError):
        return word in (PIPE / "faults").read_text().split()
    return False


class Daemon:
    """What NVIDIA's daemon keeps: servers by user, their clients, limits for new clients."""

    def __init__(self) -> None:
        self.servers: dict[int, list[int]] = {}
        self.users: dict[int, int] = {}
        self.percent = "100.0"
        self.pinned: dict[str, str] = {}
        self.quits = False

    def answer(self, line: str) -> str:
        if fault("error"):
            raise ValueError("Failed to communicate")
        word, *rest = line.split()
        return str(getattr(self, f"do_{word}", self.unknown)(*rest))

    def unknown(self, *_: str) -> str:
        raise ValueError("Unrecognized command")

    def do_get_server_list(self) -> str:
        return "what?" if fault("chatter") else "\n".join(map(str, self.servers))

    def do_get_client_list(self, server: str) -> str:
        return "\n".join(map(str, self.servers[int(server)]))

    def do_connect(self, pid: str, uid: str) -> str:
        server = self.users.setdefault(int(uid), 10_000 + len(self.servers))
        self.servers.setdefault(server, []).append(int(pid))
        return str(server)

    def do_set_default_active_thread_percentage(self, percent: str) -> str:
        if not 0 < float(percent) <= 100:
            raise ValueError("Invalid percentage")
        self.percent = str(float(percent))
        return self.percent

    def do_get_default_active_thread_percentage(self) -> str:
        return self.percent

    def do_set_default_device_pinned_mem_limit(self, device: str, limit: str) -> str:
        if not limit.endswith(("G", "M")):
            raise ValueError("Invalid limit")
        self.pinned[device] = limit
        return ""

    def do_get_default_device_pinned_mem_limit(self, device: str) -> str:
        return self.pinned.get(device, "")

    def do_quit(self, *_: str) -> str:
        self.quits = True
        return ""


def daemon() -> int:
    if fault("no-start"):
        print("Failed to start MPS control daemon: no GPU", flush=True)
        return 1
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context((PIPE / "control_lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("An instance of this daemon is already running", flush=True)
            return 1
        with (LOG / "control.log").open("a") as log:
            log.write(f"{os.getpid()} starts for {os.environ.get('CUDA_VISIBLE_DEVICES', 'all')}\n")
        CONTROL.unlink(missing_ok=True)
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(CONTROL))
        listener.listen()
        if fault("die"):
            return 3
        state = Daemon()
        while not state.quits:
            peer, _ = listener.accept()
            with peer:
                serve(state, peer)
        CONTROL.unlink(missing_ok=True)
    return 0


def serve(state: Daemon, peer: socket.socket) -> None:
    while fault("hang"):
        time.sleep(0.02)
    # Who asked may be gone by now, which is noticed once more when the file is closed.
    with contextlib.suppress(OSError), peer.makefile("rw") as lines:
        for line in commands(lines):
            try:
                lines.write(f"0 {state.answer(line)}".replace("\n", "\v") + "\n")
            except (ValueError, KeyError, TypeError) as error:
                lines.write(f"1 {error}\n")
            lines.flush()


def commands(lines: "Iterator[str]") -> Iterator[str]:
    return (line.strip() for line in lines if line.strip())


def control() -> int:
    failed = 0
    with socket.socket(socket.AF_UNIX) as peer:
        try:
            peer.connect(str(CONTROL))
        except OSError:
            print("Cannot find MPS control daemon process")
            return 1
        with peer.makefile("rw") as lines:
            for line in commands(sys.stdin):
                lines.write(f"{line}\n")
                lines.flush()
                code, _, text = lines.readline().rstrip("\n").partition(" ")
                failed |= code != "0"
                if text:
                    print(text.replace("\v", "\n"))
    return failed


if __name__ == "__main__":
    if "-d" in sys.argv and os.fork():
        sys.exit(0)
    sys.exit(daemon() if {"-d", "-f"} & set(sys.argv) else control())
