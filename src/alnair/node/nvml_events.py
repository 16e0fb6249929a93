"""XID errors as NVML reports them: collected by the driver, fetched now and then.

The driver keeps what happened since an event set was made, and hands over at once what is there. So
no thread needs to wait on it: a look each second sees all.
"""

import contextlib
import ctypes
import logging
from collections.abc import Mapping
from typing import Any, Final

#: Events that are fetched at one look at most: a GPU in distress may report without end.
MOST: Final = 1000
#: Milliseconds to wait for an event where none is there; 0 may mean for ever.
_WAIT: Final = 1

_log = logging.getLogger(__name__)


class XidEvents:
    """An event set of all GPUs, for as long as NVML stays open.

    Args:
        api: The functions of `pynvml`.
        handles: The GPUs by UUID; those that cannot report are left out.
    """

    def __init__(self, api: Any, handles: Mapping[str, Any]) -> None:
        self._api = api
        self._uuids: dict[int | None, str] = {}
        self._set: Any = None
        try:
            self._set = api.nvmlEventSetCreate()
        except (api.NVMLError, AttributeError) as error:  # an older package lacks the function
            _log.warning("NVML reports no errors of GPUs: %s", error)
            return
        for uuid, handle in handles.items():
            try:
                api.nvmlDeviceRegisterEvents(handle, api.nvmlEventTypeXidCriticalError, self._set)
            except api.NVMLError as error:
                _log.warning("GPU %s reports no errors: %s", uuid, error)
                continue
            self._uuids[_address(handle)] = uuid

    def fetch(self) -> list[tuple[str, int]]:
        """Return (GPU, XID) of what came since the last time; GPU "" if it is not known which."""
        found: list[tuple[str, int]] = []
        while self._uuids and len(found) < MOST:
            try:
                event = self._api.nvmlEventSetWait_v2(self._set, _WAIT)
            except self._api.NVMLError:
                break  # nothing more; and where the driver is gone, other calls tell so
            if event.eventType == self._api.nvmlEventTypeXidCriticalError:
                # A GPU that is lost cannot be asked for its UUID any more: its handle tells.
                found.append((self._uuids.get(_address(event.device), ""), int(event.eventData)))
        return found

    def close(self) -> None:
        """Free the event set; before NVML is closed."""
        if self._set is not None:
            with contextlib.suppress(self._api.NVMLError):
                self._api.nvmlEventSetFree(self._set)
            self._set = None
            self._uuids = {}


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
