"""Fixtures of the native tests: the built libraries, fake GPUs, containers without a server."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pynvml
import pytest

from alnair.node.nvml import Nvml
from native import build
from native.container import Container
from native.fake import Fake


@pytest.fixture(scope="session", autouse=True)
def libraries() -> Path:
    """The folder of the built libraries; every native test needs them."""
    return build.libraries()


@pytest.fixture
def fake() -> Iterator[Fake]:
    """One H200 in wall time. Tests that need another machine make their own `Fake`."""
    with Fake() as made:
        yield made


@pytest.fixture
def gpu(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """The handle of that GPU for nvidia-ml-py, which this process then uses on the fake driver."""
    ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))  # its soname is then known to dlopen
    monkeypatch.setenv("FAKEGPU_STATE", str(fake.state))
    pynvml.nvmlInit()
    yield pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()


@pytest.fixture
def nvml(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nvml]:
    """NVML on that GPU, as the agent opens it."""
    ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))  # its soname is then known to dlopen
    monkeypatch.setenv("FAKEGPU_STATE", str(fake.state))
    opened = Nvml.open()
    yield opened
    opened.close()


@pytest.fixture
def container(fake: Fake) -> Iterator[Callable[..., Container]]:
    """Makes containers that may use the first GPU of `fake`, with these fields of its row."""
    with ExitStack() as stack:

        def make(**options: int) -> Container:
            return stack.enter_context(Container(fake.uuid(), **options))

        yield make
