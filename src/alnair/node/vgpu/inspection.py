"""Once a second, the driver's word against the containers': corrections, and violations.

What the driver lists by host pid is joined with the containers by the kernel's control groups.
`alnair.sharing` decides on the joined figures; this writes what the pages must say and hands the
rest out as values.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable
from typing import Final

from alnair.node.cgroups import Cgroup
from alnair.node.gpu_looks import GpuLook
from alnair.node.process_places import ProcessPlaces
from alnair.node.readings.values import Load
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.containers.container_slices import guaranteed
from alnair.node.vgpu.driver_accounts import DriverAccounts
from alnair.node.vgpu.driver_mappings import DriverMappings
from alnair.node.vgpu.driver_mappings import Process as MappingProcess
from alnair.node.vgpu.pages.counters import DeviceUse
from alnair.node.vgpu.server import VgpuServer
from alnair.node.vgpu.stray_processes import StrayProcesses
from alnair.sharing.debts import inexact
from alnair.sharing.violations import (
    Action,
    Case,
    Kind,
    Observation,
    Policy,
    Process,
    Throttle,
    ViolationRules,
    judge,
    respond,
)

_TICKS_PER_SECOND: Final = 100  # of /proc/PID/stat, on all that Linux runs on

_log = logging.getLogger(__name__)

_Key = tuple[str, str]
Tell = Callable[[VgpuContainer, str, Action], None]


class Inspection:
    """Takes the looks at all GPUs of the node, also those that no container has a slice of.

    Args:
        server: The containers.
        policy: What follows from a violation.
        tell: Called with (container, GPU, what is to be told or done).
        rules: Of violations.
        strays: What is to become of processes of no container; by default they are counted.
        mappings: Says which driver libraries a process has; by default nobody looks.
        clock: Seconds, as CLOCK_MONOTONIC of the containers.

    Attributes:
        confirmed: Violations so far by (container, GPU, kind), of the containers that are there.
        measured: Bytes that the driver charges to a container on a GPU, by both.
        strays: Processes that are of no container with a slice.
        problem: Why the driver does not answer, or "".
    """

    def __init__(
        self,
        server: VgpuServer,
        policy: Policy,
        tell: Tell,
        rules: ViolationRules = ViolationRules(),  # noqa: B008 (frozen)
        strays: StrayProcesses | None = None,
        mappings: DriverMappings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._places = ProcessPlaces(server.proc)
        self._policy = policy
        self._tell = tell
        self._rules = rules
        self._mappings = mappings
        #: Processes of containers at this look.
        self._tenants: set[MappingProcess] = set()
        self._cases: dict[_Key, Case] = {}
        self._clock = clock
        self._accounts = DriverAccounts(server.compute, self._places.started)
        self._listed: dict[tuple[str, int], float] = {}
        self.confirmed: dict[tuple[str, str, Kind], int] = {}
        self.measured = self._accounts.measured
        self.strays = strays or StrayProcesses(server.proc)
        self.problem = ""

    def violations(self, name: str, uuid: str) -> dict[Kind, str]:
        """What is confirmed of a container on a GPU now."""
        return self._cases.get((name, uuid), Case()).violations

    def take(self, seen: GpuLook) -> None:
        """Take in one look; of a GPU that has not answered yet, all stays as it is."""
        if not seen.opened:
            return  # the driver has not come yet
        shared = {
            share.uuid for c in self._server.containers.values() for share in c.assignment.shares
        }
        self._note_problem(seen, shared)
        self._forget(shared | seen.loads.keys() | seen.problems.keys() | seen.late)
        now = self._clock()
        self._tenants.clear()
        self._places.renew()
        self.strays.renew()
        for uuid, load in seen.loads.items():
            try:
                used = self._accounts.used(uuid, load, seen.usages.get(uuid))
                self._judge(uuid, load, used, now)
            except OSError as error:
                _log.warning("%s: %s", uuid, error)
        if self._mappings is not None:
            self._mappings.look(self._tenants, now)

    def _note_problem(self, seen: GpuLook, shared: Iterable[str]) -> None:
        missing = set(shared) - seen.loads.keys() - seen.problems.keys() - seen.late
        problems = [f"there is no GPU {uuid} on this node" for uuid in sorted(missing)]
        problem = [*problems, *seen.problems.values(), ""][0]
        if problem != self.problem:
            _log.warning("NVML: %s", problem or "answers again")
        self.problem = problem

    def _forget(self, uuids: set[str]) -> None:
        there = self._server.containers
        self._accounts.forget(there, uuids)
        for key in [k for k in self._cases if k[0] not in there or k[1] not in uuids]:
            del self._cases[key]
        for counted in [c for c in self.confirmed if c[0] not in there]:
            del self.confirmed[counted]
        self.strays.forget(uuids)

    def _judge(self, uuid: str, load: Load, used: dict[int, float] | None, now: float) -> None:
        for pid in load.memory:
            self._listed.setdefault((uuid, pid), now)
        for key in [k for k in self._listed if k[0] == uuid and k[1] not in load.memory]:
            del self._listed[key]
        mine, strays = self._join(uuid, load.memory)
        for name, container in self._server.containers.items():
            rows = [share.uuid for share in container.assignment.shares]
            pids = mine.get(name, [])
            if uuid in rows:
                self._accounts.look(container, rows.index(uuid), pids, load, used, now)
            if uuid in rows or pids or (name, uuid) in self._cases:
                self._suspect(container, uuid, pids, load, used, now)
        self._accounts.keep_only(uuid, load.memory)
        self.strays.look(uuid, strays, now, lambda pid: self._process(uuid, pid, load, now))

    def _join(
        self, uuid: str, pids: Iterable[int]
    ) -> tuple[dict[str, list[int]], dict[int, Cgroup]]:
        """Return the processes of each container by name, and where those are that are of none."""
        found: dict[str, list[int]] = {}
        strays: dict[int, Cgroup] = {}
        # Of a pod's containers, one that has not registered could be meant by any of its processes:
        # those whose control group is known go first.
        containers = sorted(self._server.containers.values(), key=lambda c: c.group is None)
        for pid in pids:
            place = self._places.cgroup(pid)
            if place is None:
                continue  # it has ended
            one = next((c for c in containers if c.has(place)), None)
            if one is None:
                if not self._server.is_refused(place):
                    strays[pid] = place
            elif any(share.uuid == uuid for share in one.assignment.shares) or (
                not self.strays.may_hold(place.pod, uuid)
            ):
                found.setdefault(one.assignment.name, []).append(pid)
        return found, strays

    def _suspect(
        self,
        container: VgpuContainer,
        uuid: str,
        pids: list[int],
        load: Load,
        used: dict[int, float] | None,
        now: float,
    ) -> None:
        shares = [share for share in container.assignment.shares if share.uuid == uuid]
        # A GPU that it has no slice of is one that it goes past all limits on.
        memory = shares[0].memory_mib << 20 if shares else 0
        if shares and not (memory or guaranteed(shares[0])):
            return  # nothing is limited, its calls are counted only
        is_hard = bool(shares and shares[0].compute_percent and not shares[0].soft)
        key = container.assignment.name, uuid
        row = container.assignment.shares.index(shares[0]) if shares else -1
        told = [load.shares[pid] for pid in pids if pid in load.shares]
        seen = Observation(
            now=now,
            since=container.since,
            processes=tuple(self._process(uuid, pid, load, now, container, row) for pid in pids),
            memory_limit=memory + (container.loan(row) if shares and shares[0].borrows else 0),
            used=min(1.0, sum(told)) if told else None,
            share=shares[0].compute_percent / 100 if is_hard else None,
            mps=bool(load.mps),
            measured=sum(used.get(pid, 0.0) for pid in pids) if used is not None else None,
            granted=self._accounts.granted(key),
            is_in_debt=self._accounts.is_in_debt(key),
            margin=inexact(sum(load.shares.values())),
            ledger=container.held(row) if shares else None,
            context=container.limits.page.device[row].context_bytes if shares else 0,
        )
        before = self._cases.get(key, Case())
        after = self._cases[key] = judge(before, seen, self._rules)
        for kind in after.violations.keys() - before.violations.keys():
            counted = (*key, kind)
            self.confirmed[counted] = self.confirmed.get(counted, 0) + 1
        for action in respond(self._policy, before, after):
            if isinstance(action, Throttle):
                throttled = self._server.compute.throttled
                (throttled.add if action.on else throttled.discard)(key)
            self._tell(container, uuid, action)

    def _process(
        self,
        uuid: str,
        pid: int,
        load: Load,
        now: float,
        container: VgpuContainer | None = None,
        row: int = -1,
    ) -> Process:
        ticks = self._places.started(pid)
        beside, since = "", now
        ended = None
        searched = math.inf
        use: DeviceUse | None = None
        if container is not None:
            at = container.census.pids.get(pid)
            if row >= 0 and at is not None and at < len(container.slots):
                use = container.slots[at].devices[row]
            ended = container.census.ended.get(pid)
            searched = container.census.known_at - self._listed[uuid, pid]
            process = MappingProcess(pid, ticks)
            self._tenants.add(process)
            if self._mappings is not None:
                beside, since = self._mappings.beside(process)
        return Process(
            pid=pid,
            memory=load.memory[pid],
            registered=row >= 0 and container is not None and pid in container.census.pids,
            age=time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / _TICKS_PER_SECOND if ticks else 0,
            listed=now - self._listed[uuid, pid],
            ended=now - ended if ended is not None else None,
            beside=beside,
            beside_for=now - since,
            held=use.held if use is not None else None,
            contexts=use.contexts if use is not None else None,
            waiting=use.waiting if use is not None else 0,
            account=self._accounts.account(uuid, pid) if use is not None else None,
            searched=searched,
            charging=(
                self._accounts.charging(uuid, pid, use.charged_ns, now) if use is not None else 0.0
            ),
        )
