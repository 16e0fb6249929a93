"""Who uses which GPU, how fast the neighbours let them run, and what an agent would measure."""

from collections.abc import Iterable
from typing import Final

import msgspec

from alnair.model.cluster import Gpu, GpuLoad, Node
from alnair.model.workload import Pod
from alnair.sim.interference import Interference, Tenant
from alnair.sim.recorder import Recorder
from alnair.sim.work import Member, Task

_FULL: Final = 100.0


class _Guest(msgspec.Struct, frozen=True):
    """A member on one GPU; `memory_mib` is what it may use of its memory."""

    member: Member
    tenant: Tenant
    memory_mib: int


class _House:
    """A GPU; `rates` are those of its guests, since a moment."""

    __slots__ = ("gpu", "guests", "rates", "since")

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.guests: list[_Guest] = []
        self.rates: list[float] = []
        self.since = 0.0


class Tenancy:
    """The GPUs of the cluster and their users.

    Args:
        model: how fast neighbours run; None = nobody disturbs anybody.
        recorder: is told of pairs on a GPU.
    """

    def __init__(self, model: Interference | None, recorder: Recorder) -> None:
        self._model = model
        self._recorder = recorder
        self._houses: dict[str, _House] = {}

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
            house = self._houses.get(uuid)
            if house is None:
                if uuid not in gpus:
                    continue
                house = self._houses[uuid] = _House(gpus[uuid])
            util = job.util
            if not share.whole and demand and demand.hard and demand.compute:
                util = min(util, float(demand.compute))  # its limit binds it also when alone
            memory = demand.memory_mib if demand and not share.whole else share.memory_mib
            member.gpus += (uuid,)
            member.util += util / _FULL
            guests = [*house.guests, _Guest(member, Tenant(util, job.kind), memory)]
            changed += self._change(house, guests, now)
        return changed

    def leave(self, member: Member, now: float) -> list[Task]:
        """Note that a pod uses no GPU any more; returns which others' speed changed."""
        changed: list[Task] = []
        for uuid in member.gpus:
            house = self._houses[uuid]
            guests = [guest for guest in house.guests if guest.member is not member]
            changed += self._change(house, guests, now)
        member.gpus = ()
        return changed

    def loads(self, node: Node, now: float) -> tuple[GpuLoad, ...]:
        """Return what the agent of a node measures."""
        return tuple(self._load(gpu, now) for gpu in node.gpus)

    def end(self, now: float) -> None:
        """Tell the recorder of the pairs that are there still."""
        for house in self._houses.values():
            self._note_pair(house, now)
            house.since = now

    def _load(self, gpu: Gpu, now: float) -> GpuLoad:
        house = self._houses.get(gpu.uuid)
        util, memory = 0.0, 0
        for guest in house.guests if house else ():
            memory += guest.memory_mib
            if guest.member.task.rate > 0:  # a gang that lacks a pod waits
                util += guest.tenant.util * guest.member.rate
        return GpuLoad(gpu.uuid, round(min(util, _FULL), 1), min(memory, gpu.memory_mib), now)

    def _change(self, house: _House, guests: list[_Guest], now: float) -> Iterable[Task]:
        self._note_pair(house, now)
        house.guests, house.since = guests, now
        if self._model is None:
            return ()
        if len(guests) > 1:
            tenants = [guest.tenant for guest in guests]
            house.rates = list(self._model.rates(tenants, house.gpu.model))
        else:
            house.rates = [1.0] * len(guests)
        changed = []
        for guest, rate in zip(guests, house.rates, strict=True):
            member = guest.member
            if len(member.gpus) > 1:
                rate = min(self._rate(member, uuid) for uuid in member.gpus)
            if rate != member.rate:
                member.rate = rate
                changed.append(member.task)
        return changed

    def _rate(self, member: Member, uuid: str) -> float:
        house = self._houses[uuid]
        for guest, rate in zip(house.guests, house.rates, strict=True):
            if guest.member is member:
                return rate
        return 1.0

    def _note_pair(self, house: _House, now: float) -> None:
        if self._model is None or len(house.guests) != 2 or now <= house.since:
            return
        first, second = (guest.member.task.job.name for guest in house.guests)
        if first != second:
            rates = (house.rates[0], house.rates[1])
            self._recorder.shared((first, second), now - house.since, rates)
