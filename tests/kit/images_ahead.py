"""The container images, made while a run of all tests is at its unit tests.

It takes minutes, and mostly waits for the disk. Tests that need them find them ready, or wait for
the build's lock, or build them and say what is wrong.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from alnair.built_from import ROOT

_BUILD = ROOT / "deploy" / "images" / "build.py"
_TESTS = Path(__file__).parents[1]


def are_needed(paths: Iterable[str]) -> bool:
    """Whether a run of these files and folders has the tests of images in it."""
    images = _TESTS / "integration" / "images"
    return any(images.is_relative_to(Path(path.partition("::")[0]).resolve()) for path in paths)


def begin() -> subprocess.Popen[bytes]:
    """Begin to build; what it says is left to the test that needs the images."""
    return subprocess.Popen(
        [sys.executable, str(_BUILD)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def end(build: subprocess.Popen[bytes]) -> None:
    """End it with all that it started, if nobody waited for it."""
    if build.poll() is None:
        os.killpg(build.pid, signal.SIGTERM)
    build.wait()
