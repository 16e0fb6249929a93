"""Who uses which GPU, how fast the neighbours let them run, and what an agent would measure."""

from collections.abc import Iterable
from typing import Final

import msgspec

from alnair.model.nodes import Gpu, GpuLoad, Node
from alnair.model.pair_rates import TIME_SLICED, mode_of
from alnair.model.workload import Pod
from alnair.sim.interference import SpeedModel, Tenant
from alnair.sim.recorder import Recorder
from alnair.sim.task_progress import Member, Task

_FULL: Final = 100.0


class _Occupant(msgspec.Struct, frozen=True):
    """A member on one GPU; `memory_mib` is what it may use of its memory."""

    member: Member
    tenant: Tenant
    memory_mib: int


class _SharedGpu:
    """A GPU; `rates` are those of its occupants, since a moment."""

    __slots__ = ("gpu", "occupants", "rates", "since")

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.occupants: list[_Occupant] = []
        self.rates: list[float] = []
        self.since = 0.0


class Tenancy:
    """The GPUs of the cluster and their users.

    Args:
        model: how fast neighbours run; None = nobody disturbs anybody.
        recorder: is told of pairs on a GPU.
    """

    def __init__(self, model: SpeedModel | None, recorder: Recorder) -> None:
        self._model = model
        self._recorder = recorder
        self._shared: dict[str, _SharedGpu] = {}

    def join(self, member: Member, pod: Pod, node: Node, now: float) -> list[Task]:
        """Note that a pod uses GPUs from now on; returns whose speed changed.

        Args:
            member: its part in its task.
            pod: as it is bound.
            node: where.
            now: seconds since the epoch.
        """
        gpus = {gpu.uuid: gpu for gpu in node.gpus}
        changed: list[Task] = []
        shares = {s.uuid: s for _, parts in pod.assignment for s in parts}
        job, demand = member.task.job, pod.spec.gpu
        for uuid, share in shares.items():
            shared = self._shared.get(uuid)
            if shared is None:
                if uuid not in gpus:
                    continue
                shared = self._shared[uuid] = _SharedGpu(gpus[uuid])
            util = job.util
            if not share.whole and demand and not demand.soft and demand.compute:
                util = min(util, float(demand.compute))  # its limit binds it also when alone
            memory = demand.memory_mib if demand and not share.whole else share.memory_mib
            member.gpus += (uuid,)
            member.util += util / _FULL
            mode = mode_of(demand) if demand and not share.whole else TIME_SLICED
            tenant = Tenant(util, job.kind or pod.spec.workload, mode)
            occupants = [*shared.occupants, _Occupant(member, tenant, memory)]
            changed += self._change(shared, occupants, now)
        return changed

    def leave(self, member: Member, now: float) -> list[Task]:
        """Note that a pod uses no GPU any more; returns which others' speed changed."""
        changed: list[Task] = []
        for uuid in member.gpus:
            shared = self._shared[uuid]
            occupants = [occupant for occupant in shared.occupants if occupant.member is not member]
            changed += self._change(shared, occupants, now)
        member.gpus = ()
        return changed

    def loads(self, node: Node, now: float) -> tuple[GpuLoad, ...]:
        """Return what the agent of a node measures."""
        return tuple(self._load(gpu, now) for gpu in node.gpus)

    def end(self, now: float) -> None:
        """Tell the recorder of the pairs that are there still."""
        for shared in self._shared.values():
            self._note_pair(shared, now)
            shared.since = now

    def _load(self, gpu: Gpu, now: float) -> GpuLoad:
        shared = self._shared.get(gpu.uuid)
        util, memory = 0.0, 0
        for occupant in shared.occupants if shared else ():
            memory += occupant.memory_mib
            if occupant.member.task.rate > 0:  # a gang that lacks a pod waits
                util += occupant.tenant.util * occupant.member.rate
        return GpuLoad(gpu.uuid, round(min(util, _FULL), 1), min(memory, gpu.memory_mib), now)

    def _change(self, shared: _SharedGpu, occupants: list[_Occupant], now: float) -> Iterable[Task]:
        self._note_pair(shared, now)
        shared.occupants, shared.since = occupants, now
        if self._model is None:
            return ()
        if len(occupants) > 1:
            tenants = [occupant.tenant for occupant in occupants]
            shared.rates = list(self._model.rates(tenants, shared.gpu.model))
        else:
            shared.rates = [1.0] * len(occupants)
        changed = []
        for occupant, rate in zip(occupants, shared.rates, strict=True):
            member = occupant.member
            if len(member.gpus) > 1:
                rate = min(self._rate(member, uuid) for uuid in member.gpus)
            if rate != member.rate:
                member.rate = rate
                changed.append(member.task)
        return changed

    def _rate(self, member: Member, uuid: str) -> float:
        shared = self._shared[uuid]
        for occupant, rate in zip(shared.occupants, shared.rates, strict=True):
            if occupant.member is member:
                return rate
        return 1.0

    def _note_pair(self, shared: _SharedGpu, now: float) -> None:
        if self._model is None or len(shared.occupants) != 2 or now <= shared.since:
            return
        first, second = (occupant.member.task.job.name for occupant in shared.occupants)
        if first != second:
            rates = (shared.rates[0], shared.rates[1])
            self._recorder.shared((first, second), now - shared.since, rates)
