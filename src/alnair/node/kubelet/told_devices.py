"""What an agent told the kubelet last, kept for the first moments of the next one."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from alnair.node.kubelet.plugin_server import PluginDevice

NAME: Final = "told-devices.json"
_VERSION: Final = 1

_log = logging.getLogger(__name__)


class _File(msgspec.Struct):
    v: int
    devices: dict[str, tuple[PluginDevice, ...]]


class ToldDevices:
    """A file of the agent's folder, which does not outlive the machine's run.

    Args:
        folder: This; it need not be there yet.

    Attributes:
        devices: By resource; none where there is no file, or it is of another version.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self.devices: Mapping[str, Sequence[PluginDevice]] = {}
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=_File)
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("%s is not used: %s", self._path, error)
            return
        if found.v == _VERSION:
            self.devices = found.devices

    def note(self, devices: Mapping[str, Sequence[PluginDevice]]) -> None:
        """Keep what is told now; nothing is lost but time if it cannot be written."""
        if devices == self.devices:
            return
        told = {resource: tuple(listed) for resource, listed in devices.items()}
        try:
            new = self._path.with_name(f".{NAME}.new")
            new.write_bytes(msgspec.json.encode(_File(_VERSION, told)))
            new.rename(self._path)
        except OSError as error:
            _log.warning("the next agent will be late at the kubelet: %s", error)
            return
        self.devices = told
