"""How fast jobs run that share a GPU: the interface, and the model that is used by default.

Without measurements a GPU's time is what is shared: tenants that would together use more than all
of it run slower, all by the same factor (`Proportional`). Two tenants whose kinds have been
measured together run as fast as they were measured to (Gavel: Narayanan et al.,
*Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads*, OSDI 2020).
"""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Protocol

import msgspec


class Tenant(msgspec.Struct, frozen=True, gc=False):
    """A pod on a GPU.

    Attributes:
        util: percent of the GPU's time that it would use alone.
        kind: what it computes; empty if nobody knows.
    """

    util: float
    kind: str = ""


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


class PairRates(msgspec.Struct, frozen=True, omit_defaults=True):
    """Measured speeds of pairs on one GPU model.

    Attributes:
        kinds: names of what was measured.
        rates: row by row, the speed of the row's kind beside the column's, as a part of its speed
            alone; 0 where the two do not fit together, or were not measured.
        alone: steps per second of each kind alone, 0 where that was not measured; None where
            nothing is known of it.
    """

    kinds: tuple[str, ...]
    rates: tuple[tuple[float, ...], ...]
    alone: tuple[float, ...] | None = None


class MeasuredPairs:
    """Measured speeds where two tenants are both known, the rest proportional.

    Args:
        tables: by GPU model.
        default: the model whose table stands for all others.
    """

    def __init__(self, tables: dict[str, PairRates], default: str) -> None:
        self._tables = {
            model: {
                (row, column): table.rates[i][j]
                for i, row in enumerate(table.kinds)
                for j, column in enumerate(table.kinds)
            }
            for model, table in tables.items()
        }
        self._default = self._tables[default]
        self._rest = Proportional()

    def rates(self, tenants: Sequence[Tenant], model: str) -> Sequence[float]:
        """Return measured speeds, or else the shares of the GPU's time."""
        if len(tenants) == 2:
            first, second = tenants
            table = self._tables.get(model, self._default)
            own = table.get((first.kind, second.kind), 0.0)
            other = table.get((second.kind, first.kind), 0.0)
            if own > 0 and other > 0:
                return own, other
        return self._rest.rates(tenants, model)


@cache
def measured() -> MeasuredPairs:
    """Return the default model, with the pairs that ship with Alnair."""
    data = (resources.files("alnair") / "data" / "gavel" / "pairs.json").read_bytes()
    return MeasuredPairs(msgspec.json.decode(data, type=dict[str, PairRates]), "V100")
