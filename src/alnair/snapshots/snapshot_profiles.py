"""Snapshots from files and answers, with their profiles as the configuration spells them."""

from pathlib import Path

import msgspec

from alnair.configuration.scheduler_file import ProfileConfiguration
from alnair.snapshots import snapshot as plain
from alnair.snapshots.snapshot import Snapshot, SnapshotError


def decode(data: bytes) -> Snapshot:
    """Return what a file holds.

    Raises:
        SnapshotError: It is none, or of another version.
    """
    found = plain.decode(data)
    try:
        profiles = msgspec.convert(found.profiles, tuple[ProfileConfiguration, ...])
    except msgspec.ValidationError as error:
        raise SnapshotError(f"is a damaged snapshot: {error}; save a new one") from error
    return msgspec.structs.replace(found, profiles=profiles)


def load(path: Path) -> Snapshot:
    """Return what a file holds.

    Raises:
        SnapshotError: It cannot be read, is none, or of another version.
    """
    try:
        return decode(path.read_bytes())
    except OSError as error:
        raise SnapshotError(f"{path} cannot be read: {error.strerror or error}") from error
    except SnapshotError as error:
        raise SnapshotError(f"{path} {error}") from error
