"""Where the two builds of the library that limits programs are on this node."""

from pathlib import Path
from typing import Final

import alnair

NAME: Final = "libalnair_vgpu.so"
_BUILT: Final = Path(alnair.__file__).parents[2] / "build" / "native"
#: In a platform wheel (deploy/wheel_hook.py).
_SHIPPED: Final = Path(__file__).parent / "libraries"
#: In a checkout, in a wheel, or installed by hand.
_PLACES: Final = (_BUILT / NAME, _SHIPPED / NAME, Path("/usr/local/lib") / NAME)
#: Its name is the driver's: it lies where no loader looks by itself.
_PROXY_PLACES: Final = (
    _BUILT / "proxy" / "libcuda.so.1",
    _SHIPPED / "proxy" / "libcuda.so.1",
    Path("/usr/local/lib/alnair/proxy/libcuda.so.1"),
)


def interposer() -> Path | None:
    """The library that is preloaded; None: there is none."""
    return next((place for place in _PLACES if place.is_file()), None)


def proxy() -> Path | None:
    """The library that stands in the driver's place; None: there is none."""
    return next((place for place in _PROXY_PLACES if place.is_file()), None)


def symbols() -> Path | None:
    """The table of the driver's functions, hooked or passed; None: there is none."""
    places = (_BUILT.parents[1] / "native" / "vgpu" / "symbols.tsv", _SHIPPED / "symbols.tsv")
    return next((place for place in places if place.is_file()), None)
