"""How fast jobs run that share a GPU: the interface, and the model that is used by default.

Without measurements a GPU's time is what is shared: tenants that would together use more than all
of it run slower, all by the same factor (`Proportional`). Two tenants whose kinds have been
measured together run as fast as they were measured to (Gavel: Narayanan et al.,
*Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads*, OSDI 2020).
"""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final, Protocol

import msgspec

from alnair.model.pair_rates import TIME_SLICED, Pairs, PairTables
from alnair.traces import pair_tables

#: Its table stands for all models that have none.
DEFAULT_MODEL: Final = "V100"


class Tenant(msgspec.Struct, frozen=True, gc=False):
    """A pod on a GPU.

    Attributes:
        util: percent of the GPU's time that it would use alone.
        kind: what it computes; empty if nobody knows.
        mode: how it shares the GPU (`alnair.model.pair_rates.MODES`).
    """

    util: float
    kind: str = ""
    mode: str = TIME_SLICED


class SpeedModel(Protocol):
    """Predicts how fast pods run that share a GPU."""

    def rates(self, tenants: Sequence[Tenant], model: str) -> Sequence[float]:
        """Return the speed of each tenant as a part of its speed alone, above 0 and up to 1.

        Args:
            tenants: of one GPU, two or more.
            model: of the GPU.
        """
        ...


class Proportional:
    """A GPU has 100 percent of time; of what is asked beyond that, all get the same part."""

    def rates(self, tenants: Sequence[Tenant], model: str) -> Sequence[float]:
        """Return the time that there is over the time that is asked, at most 1."""
        asked = sum(tenant.util for tenant in tenants)
        return [min(1.0, 100.0 / asked) if asked > 0 else 1.0] * len(tenants)


class MeasuredPairs:
    """Measured speeds where two tenants are both known, the rest proportional.

    Args:
        tables: by GPU model.
        default: the model whose table stands for all others.
    """

    def __init__(self, tables: PairTables, default: str) -> None:
        self._pairs = Pairs(tables, default)
        self._rest = Proportional()

    def rates(self, tenants: Sequence[Tenant], model: str) -> Sequence[float]:
        """Return measured speeds, or else the shares of the GPU's time."""
        if len(tenants) == 2:
            first, second = tenants
            mode = first.mode if first.mode == second.mode else TIME_SLICED
            if found := self._pairs.measured(model, mode, first.kind, second.kind):
                return found.own, found.other
        return self._rest.rates(tenants, model)


@cache
def shipped() -> PairTables:
    """Return the tables that ship with Alnair."""
    data = (resources.files("alnair") / "data" / "gavel" / "pairs.json").read_bytes()
    return pair_tables.parse(data, "the shipped pairs")


def measured(more: PairTables | None = None) -> MeasuredPairs:
    """Return the default model, by the pairs that ship with Alnair.

    Args:
        more: further tables; they take the place of shipped ones of their GPU models.
    """
    return MeasuredPairs({**shipped(), **(more or {})}, DEFAULT_MODEL)
