"""Scripts of driver calls (clients/timed.c) on a fake GPU whose costs are plain numbers."""

import subprocess
from functools import cache
from pathlib import Path

from native import build
from native.fake import Fake

#: Numbers that make times easy to read: marks and switches cost nothing much, calls 1 us.
PLAIN = {
    "clock": "virtual",
    "launch_ns": 1000,
    "call_ns": 1000,
    "sync_ns": 0,
    "event_ns": 1000,
    "switch_us": 0,
}


@cache
def timed() -> Path:
    """The client that runs a script."""
    return build.client("timed", "-l:libcuda.so.1", "-l:libfakegpu.so")


def script(fake: Fake, text: str, tag: str = "a", **more: str) -> list[str]:
    """Lines that a script (commands of timed.c, separated by semicolons) printed."""
    environment = fake.environment(tag, **more)
    return build.checked(timed(), *commands(text), environment=environment).splitlines()


def begin(fake: Fake, text: str, tag: str = "a", **more: str) -> "subprocess.Popen[str]":
    """Starts a script."""
    return build.start(timed(), *commands(text), environment=fake.environment(tag, **more))


def commands(text: str) -> list[str]:
    """The commands of a script, each in one line."""
    return [" ".join(command.split()) for command in text.split(";")]


def finish(*processes: "subprocess.Popen[str]") -> list[list[str]]:
    """What each printed."""
    outputs = []
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (process.args, process.returncode, out, err)
        outputs.append(out.split())
    return outputs
