"""What pods ask of GPUs, in words for people."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from alnair.model.plurals import counted
from alnair.model.workload import GpuDemand

#: Kinds of slices that are told apart.
_KINDS: Final = 3


def in_words(demands: Iterable[GpuDemand | None]) -> str:
    """Return what all of them ask for: `8 GPUs`, `a slice of 8192 MiB and 30 % of a GPU`.

    Args:
        demands: Of pods; None asks for nothing.
    """
    asked = [one for one in demands if one is not None]
    whole = sum(one.whole for one in asked)
    slices = Counter(_slice(one) for one in asked if one.memory_mib or one.compute)
    parts = [counted(whole, "GPU")] if whole or not slices else []
    if len(slices) > _KINDS:
        parts.append(f"{slices.total()} slices of GPUs")
    else:
        parts += [
            f"{f'{count} slices' if count > 1 else 'a slice'} of {words} of a GPU"
            for words, count in slices.items()
        ]
    return " and ".join(parts)


def _slice(demand: GpuDemand) -> str:
    compute = f" and {demand.compute} %" if demand.compute else ""
    return f"{demand.memory_mib} MiB{compute}"
