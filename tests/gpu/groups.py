"""Control groups: what makes a process group a container for the vGPU server."""

import contextlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from alnair.node.cgroups import Proc


class NoControlGroupsError(Exception):
    """None can be made here; says why."""


class Group(NamedTuple):
    """A control group: its path for the server, and its folder."""

    name: str
    folder: Path


@contextmanager
def control_group() -> Iterator[Group]:
    """A new control group, removed at the end; its processes must have ended.

    Raises:
        NoControlGroupsError: This process may not make one.
    """
    proc = Proc()
    name = f"/alnair-test-{uuid.uuid4().hex[:12]}"
    folder = proc.mounts.folder(name, "" if "" in proc.mounts.at else "pids")
    if folder is None:
        raise NoControlGroupsError("no hierarchy of control groups is mounted here")
    try:
        folder.mkdir()
    except OSError as error:
        text = f"control groups cannot be made here: {error.strerror}"
        raise NoControlGroupsError(text) from error
    try:
        yield Group(name, folder)
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()
