"""Which calls of CUDA a pod makes: by the counters of its containers, where they have any."""

import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from alnair.model import names
from alnair.model.job_facts import CudaCalls
from alnair.node.vgpu.containers.container_slices import ContainerSlices
from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.pages.totals import Totals
from alnair.profiler.job_facts.cuda_calls import distribution, growth, kind_by_calls
from alnair.profiler.pods.accounts import Account

_ASK: Final = (
    f"nobody counts the calls of a whole GPU: annotate the pod with {names.COUNT_CALLS}: 'true' "
    "before it starts"
)
_MIG: Final = "calls are not counted on MIG devices"
_OLDER: Final = "; by an older library, with graphs as launches and without events and modules"


class Counted(Protocol):
    """A container with counters; see `VgpuContainer`."""

    assignment: ContainerSlices

    @property
    def totals(self) -> Totals:
        """What it used."""
        ...


class PodCalls:
    """Remembers each pod's counts of the last look.

    Args:
        containers: Those with counters.
        now: Seconds, monotonic.
    """

    def __init__(
        self,
        containers: Callable[[], Iterable[Counted]] = tuple,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._containers = containers
        self._now = now
        self._before: dict[str, tuple[float, dict[str, int]]] = {}

    def keep(self, uids: Iterable[str]) -> None:
        """Forget all pods but those with these uids."""
        kept = set(uids)
        self._before = {uid: one for uid, one in self._before.items() if uid in kept}

    def look(self, account: Account) -> tuple[CudaCalls | None, str | None]:
        """Return what a pod called since the last look, and the kind of work that it tells.

        None: nothing, or this is the first look.
        """
        mine = [one for one in self._containers() if one.assignment.pod.uid == account.uid]
        if not mine:
            is_mig = any(uuid.startswith("MIG-") for uuid in account.gpus)
            return CudaCalls(unknown=_MIG if is_mig else _ASK), None
        counts, now = _counts(mine), self._now()
        then, before = self._before.get(account.uid, (now, counts))
        self._before[account.uid] = now, counts
        source = "the slice's library" if _has_limits(mine) else "the library, as the pod asks"
        if any(one.totals.uncounted for one in mine):
            source += _OLDER
        grown = growth(before, counts)
        return distribution(before, counts, now - then, source), kind_by_calls(grown)


def _counts(containers: Iterable[Counted]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in containers:
        for call in abi.Call:
            if call not in one.totals.uncounted:
                name = call.name.lower()
                found[name] = found.get(name, 0) + one.totals.calls[call][0]
    return found


def _has_limits(containers: Iterable[Counted]) -> bool:
    shares = [share for one in containers for share in one.assignment.shares]
    return any(share.memory_mib or share.compute_percent for share in shares)
