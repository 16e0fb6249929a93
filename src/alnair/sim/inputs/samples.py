"""The traces that ship with Alnair; each folder has an ORIGIN.md with its origin and licence."""

from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

import msgspec

from alnair.sim.inputs.options import InputOptions

#: Name → folder and file below `alnair/data`, and nodes for traces that have none.
_SAMPLES: Final = {
    # 413 GPUs are busy on average in this week.
    "philly": ("philly", "philly-2017-11-06-week.csv.gz", "60x8xP100"),
    "gaia": ("gaia", "gaia-2014-first-21-days.swf.gz", ""),
}
NAMES: Final = ("openb", *_SAMPLES)


def find(name: str) -> Traversable:
    """Return a sample that is a file; KeyError if there is none of this name."""
    folder, file, _ = _SAMPLES[name]
    return resources.files("alnair") / "data" / folder / file


def is_file(name: str) -> bool:
    """Whether a sample of this name is a file."""
    return name in _SAMPLES


def completed(name: str, options: InputOptions) -> InputOptions:
    """Return the options with the nodes that go with a sample, unless others are named."""
    if options.nodes or name not in _SAMPLES:
        return options
    return msgspec.structs.replace(options, nodes=_SAMPLES[name][2])
