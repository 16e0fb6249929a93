"""What a job works on, each fact with where it is from; what is not known is absent.

The words of `source` are for people; an estimate begins with "estimated".
"""

from typing import Annotated

import msgspec

Positive = Annotated[float, msgspec.Meta(gt=0)]


class Figure(msgspec.Struct, frozen=True):
    """A number, and who says so."""

    value: Positive
    source: str


class Name(msgspec.Struct, frozen=True):
    """A name, and who says so."""

    value: str
    source: str


class ModelFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is trained or served."""

    name: Name | None = None
    parameters: Figure | None = None
    weights_mib: Figure | None = None


class InputPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where input may come from."""

    kind: str
    """Of a volume the key in its pod's specification, such as `persistentVolumeClaim`; or `url`."""
    where: str
    """Which one: a claim, a path, an address without user and query."""
    source: str
    """Such as `volume data at /data` or `env DATA_URL`."""


class InputFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is read, as far as it was seen to come in: not what the page cache held."""

    places: tuple[InputPlace, ...] = ()
    read_mib: Figure | None = None
    """From disks or by network, since it was first seen."""
    epoch_mib: Figure | None = None
    """The same for one epoch, the most of any."""


class CudaCalls(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the calls of CUDA's driver are distributed, since the last look."""

    per_s: float | None = None
    shares: dict[str, float] = {}
    """Class of call → part of all calls, 0 to 1; classes below a thousandth are left out."""
    source: str = ""
    unknown: str = ""
    """Why it is not known, and what to do."""


class Declared(msgspec.Struct, frozen=True):
    """What a pod's specification says of model and input."""

    model: ModelFacts = ModelFacts()
    places: tuple[InputPlace, ...] = ()
