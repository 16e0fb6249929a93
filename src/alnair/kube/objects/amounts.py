"""Quantities of API objects, in base units."""

import sys
from collections.abc import Mapping

from alnair.model import quantity


def base_units(amounts: Mapping[str, str | int] | None) -> dict[str, int]:
    """Return quantities in base units: millicores for cpu, whole units for all else.

    Raises:
        QuantityError: a quantity does not parse.
    """
    return {
        sys.intern(name): quantity.milli_value(q) if name == "cpu" else quantity.value(q)
        for name, q in (amounts or {}).items()
    }
