"""What there is in all: GPUs, the cores and memory that go with them, and those of other nodes."""

from collections.abc import Sequence
from typing import Final

import msgspec

from alnair.model.nodes import Gpu, Node

#: Nodes whose amounts per GPU have the same first so many bits are counted as alike.
_BITS: Final = 4
#: Plugins see what there is anew where a sum has changed by more than this part: each time voids
#: what they computed from it.
_CLEAR: Final = 0.05

#: By first bits of the amount per GPU: how many GPUs, and how much in all, exact sums.
_Groups = dict[int, tuple[int, int]]


class Beside(msgspec.Struct, frozen=True, gc=False):
    """How much of a resource there is.

    Attributes:
        groups: GPUs, and millicores or bytes, of nodes with about as much per GPU; most first.
        elsewhere: millicores or bytes of nodes without GPUs, if nothing keeps pods off them.
    """

    groups: tuple[tuple[int, int], ...] = ()
    elsewhere: int = 0


class SupplyState(msgspec.Struct, frozen=True, gc=False):
    """Cores and memory of the nodes that take pods."""

    cpu: Beside = Beside()
    memory: Beside = Beside()


class Supply:
    """Follows the nodes.

    Attributes:
        known: what plugins read.
        version: changes with `known`.
    """

    def __init__(self) -> None:
        self.known = SupplyState()
        self.version = 0
        self._cpu, self._memory = _Sums(), _Sums()
        self._nodes: dict[int, tuple[int, int, int]] = {}
        self._published: tuple[int, ...] = ()
        self._changed = False

    def describe(self, row: int, node: Node | None, gpus: Sequence[Gpu]) -> None:
        """Follow the node of a row, None if it is gone."""
        new = _of(node, gpus) if node is not None else None
        old = self._nodes.pop(row, None)
        if new is not None:
            self._nodes[row] = new
        if new == old:
            return
        self._changed = True
        for one, sign in ((old, -1), (new, 1)):
            if one is not None:
                self._cpu.add(one[0], one[1], sign)
                self._memory.add(one[0], one[2], sign)

    def review(self, *, always: bool) -> bool:
        """Let plugins see what there is now, always or if it is clearly not the same."""
        if not self._changed or not (always or _apart(self._totals(), self._published)):
            return False
        self._publish(self._state())
        self._changed = False
        return True

    def restore(self, state: SupplyState | None) -> None:
        """Let plugins see what was saved; what there is now if nothing was."""
        now = self._state()
        self._publish(now if state is None else state)
        self._changed = self.known != now

    def _publish(self, state: SupplyState) -> None:
        self.known = state
        self.version += 1
        self._published = self._totals()

    def _state(self) -> SupplyState:
        return SupplyState(self._cpu.state(), self._memory.state())

    def _totals(self) -> tuple[int, ...]:
        return (*self._cpu.totals, *self._memory.totals)


class _Sums:
    def __init__(self) -> None:
        self._groups: _Groups = {}
        #: GPUs, amounts beside them, amounts elsewhere.
        self.totals = (0, 0, 0)

    def add(self, gpus: int, amount: int, sign: int) -> None:
        beside, elsewhere = (amount, 0) if gpus else (0, amount)
        counted, there, apart = self.totals
        self.totals = (counted + sign * gpus, there + sign * beside, apart + sign * elsewhere)
        if not gpus:
            return
        key = _first_bits(amount // gpus)
        count, total = self._groups.get(key, (0, 0))
        if count + sign * gpus:
            self._groups[key] = (count + sign * gpus, total + sign * amount)
        else:
            del self._groups[key]

    def state(self) -> Beside:
        groups = sorted(self._groups.values(), key=lambda group: -group[1] / group[0])
        return Beside(tuple(groups), self.totals[2])


def _first_bits(amount: int) -> int:
    rest = max(amount.bit_length() - _BITS, 0)
    return amount >> rest << rest


def _of(node: Node, gpus: Sequence[Gpu]) -> tuple[int, int, int] | None:
    """Return GPUs, millicores and bytes of memory that pods can have there; None if nothing."""
    # Taints of nodes with GPUs are there for pods with GPUs; others keep most pods off.
    kept_off = any(t.effect in ("NoSchedule", "NoExecute") for t in node.taints)
    if node.unschedulable or (kept_off and not gpus):
        return None
    return len(gpus), node.allocatable.get("cpu", 0), node.allocatable.get("memory", 0)


def _apart(now: Sequence[int], then: Sequence[int]) -> bool:
    return not then or any(abs(a - b) > _CLEAR * b for a, b in zip(now, then, strict=True))
