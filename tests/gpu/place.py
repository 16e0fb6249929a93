"""Where the tests are run from: a checkout, or a bundle that brings all it needs."""

import json
import os
from typing import Any

from native import build

#: What `make gpu-bundle` says of itself; only a bundle has it.
ABOUT = build.ROOT / "bundle.json"
#: Variables that tell a program which GPU, and which driver, it finds.
_KEPT = ("CUDA_", "NVIDIA_", "FAKEGPU_")


def is_bundle() -> bool:
    """Whether everything is built already, and nothing can be built here."""
    return ABOUT.is_file()


def about() -> dict[str, Any]:
    """What the bundle was made of; of a checkout its commit."""
    if is_bundle():
        return dict(json.loads(ABOUT.read_text()))
    from alnair.built_from import commit

    return {"commit": commit() or "unknown"}


def driver_environment() -> dict[str, str]:
    """The variables by which a program finds the driver that this one found."""
    return {
        name: value
        for name, value in os.environ.items()
        if name == "LD_LIBRARY_PATH" or name.startswith(_KEPT)
    }
