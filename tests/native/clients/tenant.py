"""A process of a container, for tests of the vGPU server: does what each line on stdin says.

It speaks the frames of native/vgpu/abi.h by itself, since it must be able to speak them wrong.
"""

import json
import os
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

FRAME = struct.Struct("<QIIQII32s192s")
MAGIC = 0x31464756414E4C41


def frame(operation: int = 1, magic: int = MAGIC, version: int = 1) -> bytes:
    return FRAME.pack(magic, version, operation, os.getpid(), 0, 0, b"", b"")


def connect(path: str) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.settimeout(10)
    peer.connect(path)
    return peer


def knock(path: str, sent: bytes) -> list[Any]:
    """Send a frame; return [reply, text], or ["closed", ""]."""
    try:
        with connect(path) as peer:
            peer.send(sent)
            got = peer.recv(512)
    except (ConnectionError, FileNotFoundError):  # closed, or nobody listens
        got = b""
    if len(got) != FRAME.size:
        return ["closed", ""]
    _, _, reply, *_, text = FRAME.unpack(got)
    return [reply, text.rstrip(b"\0").decode()]


def do(folder: Path, asked: dict[str, Any]) -> Any:
    path = str(folder / "socket")
    match asked["do"]:
        case "register":
            began = time.perf_counter()
            answer = knock(path, frame(**asked.get("frame", {})))
            return [*answer, time.perf_counter() - began]
        case "send":
            return knock(path, bytes.fromhex(asked["hex"]))
        case "storm":
            kinds: dict[str, int] = {}
            for _ in range(asked["times"]):
                answer = knock(path, frame())
                kinds[str(answer[0])] = kinds.get(str(answer[0]), 0) + 1
            return kinds
        case "hold":  # connect and say nothing
            held[:] = [connect(path) for _ in range(asked["times"])]
            return len(held)
        case "heard":  # whether the held connections were closed by the other side
            return [peer.recv(1) == b"" for peer in held]
        case "vanish":  # half a conversation
            for _ in range(asked["times"]):
                peer = connect(path)
                peer.send(frame())
                peer.close()
            return True
        case "pid":
            stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
            return [os.getpid(), int(stat[19])]
        case "fork":
            if (child := os.fork()) == 0:
                time.sleep(60)
                os._exit(0)
            return child
    raise ValueError(asked)


held: list[socket.socket] = []

if __name__ == "__main__":
    if sys.argv[2]:
        Path(sys.argv[2]).write_text(str(os.getpid()))
    for line in sys.stdin:
        print(json.dumps(do(Path(sys.argv[1]), json.loads(line))), flush=True)
