"""Errors are fetched with the GPU that they are of."""

import ctypes
from types import SimpleNamespace
from typing import Any

from alnair.node import nvml_events
from alnair.node.nvml_events import XidEvents


class ApiError(Exception):
    """As `pynvml.NVMLError`."""


class Api:
    """The functions of `pynvml` that are used; GPU b cannot report."""

    NVMLError = ApiError
    nvmlEventTypeXidCriticalError = 8  # noqa: N815 (NVML's names)

    def __init__(self) -> None:
        self.waiting: list[Any] = []
        self.freed = 0

    def nvmlEventSetCreate(self) -> str:  # noqa: N802
        return "set"

    def nvmlDeviceRegisterEvents(self, handle: ctypes.c_void_p, types: int, events: str) -> None:  # noqa: N802
        assert (types, events) == (8, "set")
        if handle.value == 2:
            raise ApiError("Not Supported")

    def nvmlEventSetWait_v2(self, events: str, milliseconds: int) -> Any:  # noqa: N802
        assert (events, milliseconds) == ("set", 1)  # with 0 a driver may wait for ever
        if not self.waiting:
            raise ApiError("Timeout")
        return self.waiting.pop(0)

    def nvmlEventSetFree(self, events: str) -> None:  # noqa: N802
        self.freed += 1


def event(address: int, number: int, kind: int = 8) -> Any:
    return SimpleNamespace(device=ctypes.c_void_p(address), eventType=kind, eventData=number)


def listening(api: Api) -> XidEvents:
    return XidEvents(api, {"a": ctypes.c_void_p(1), "b": ctypes.c_void_p(2)})


def test_all_that_came_is_fetched_with_its_gpu() -> None:
    api = Api()
    events = listening(api)
    assert events.fetch() == []
    api.waiting = [event(1, 48), event(1, 3, kind=2), event(77, 79)]
    assert events.fetch() == [("a", 48), ("", 79)]
    assert events.fetch() == []


def test_a_storm_of_errors_ends_a_look(monkeypatch: Any) -> None:
    monkeypatch.setattr(nvml_events, "MOST", 3)
    api = Api()
    api.waiting = [event(1, 31)] * 5
    events = listening(api)
    assert (len(events.fetch()), len(events.fetch())) == (3, 2)


def test_it_is_freed_once() -> None:
    api = Api()
    events = listening(api)
    events.close()
    events.close()
    api.waiting = [event(1, 48)]
    assert (api.freed, events.fetch()) == (1, [])
