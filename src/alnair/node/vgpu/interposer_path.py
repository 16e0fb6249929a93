"""Where libalnair_vgpu.so is on this node."""

from pathlib import Path
from typing import Final

import alnair

NAME: Final = "libalnair_vgpu.so"
#: In a checkout, or installed.
_PLACES: Final = (
    Path(alnair.__file__).parents[2] / "build" / "native" / NAME,
    Path("/usr/local/lib") / NAME,
)


def interposer() -> Path | None:
    """The library; None: there is none."""
    return next((place for place in _PLACES if place.is_file()), None)
