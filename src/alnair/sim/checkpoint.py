"""A simulation on disk, to go on with later, after a crash or on another day.

The file holds the pickled state, the engine with its books and caches included. A simulation is
deterministic, so the inputs alone would do, and a resume could replay them. Measured on Philly's
82,247 jobs half way through, a replay takes 51 s, writing the state 1.9 s (3.8 MB), reading it
0.7 s; and the replay takes longer the longer there is a backlog. What speaks against pickles is
met so: the file names the code that wrote it and is refused by any other; a checksum tells damage;
it is written beside and renamed, so that at any moment the old or the new file is there, whole. As
with any pickle, whoever can write the file can run code as you: resume only files of your own.
"""

import gc
import hashlib
import pickle
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from alnair.history import atomic_file
from alnair.sim.simulation import Simulation

_FORMAT: Final = "alnair-simulation"
#: Histories are repetitive; more than the fastest takes longer and saves little.
_LEVEL: Final = 1


class CheckpointError(Exception):
    """A file that cannot be resumed; the message says which, why, and what to do."""


class _Head(msgspec.Struct, frozen=True):
    """The first line: what the file is, what wrote it, and the checksum of the rest."""

    format: str
    code: str
    sum: str


def save(simulation: Simulation, path: Path) -> None:
    """Write a simulation; what was in the file is replaced at once or, if this fails, not at all.

    Raises:
        OSError: it cannot be written.
    """
    with _uncollected():
        data = zlib.compress(pickle.dumps(simulation, protocol=5), _LEVEL)
    head = msgspec.json.encode(_Head(_FORMAT, code(), _sum(data)))
    atomic_file.write(path, head + b"\n" + data)


def load(path: Path) -> Simulation:
    """Read a simulation.

    Raises:
        CheckpointError: it cannot be read, is damaged, or was written by another version.
    """
    try:
        first, _, data = path.read_bytes().partition(b"\n")
    except OSError as error:
        reason = error.strerror or str(error)
        raise CheckpointError(f"{path}: cannot be read ({reason}): check the path") from error
    try:
        head = msgspec.json.decode(first, type=_Head)
    except msgspec.MsgspecError as error:
        raise CheckpointError(
            f"{path}: this is no checkpoint of a simulation: give a file that --checkpoint wrote"
        ) from error
    if head.format != _FORMAT or head.sum != _sum(data):
        raise CheckpointError(f"{path}: the checkpoint is damaged: simulate from the start")
    if head.code != code():
        raise CheckpointError(
            f"{path}: another version of Alnair, Python or NumPy wrote this checkpoint, and would "
            "decide otherwise: resume it with that one, or simulate from the start"
        )
    with _uncollected():
        found = pickle.loads(zlib.decompress(data))
    assert isinstance(found, Simulation)
    return found


@cache
def code() -> str:
    """Return what tells this program, and all that it decides by, from any other version."""
    found = hashlib.blake2b(f"{sys.version} {np.__version__}".encode(), digest_size=16)
    package = Path(__file__).parent.parent
    for folder in ("model", "traces", "scheduler", "history", "snapshots", "sim"):
        for path in sorted((package / folder).rglob("*.py")):
            found.update(str(path.relative_to(package)).encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def _sum(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let the garbage collector rest: among so many new objects it looks in vain, many times."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
