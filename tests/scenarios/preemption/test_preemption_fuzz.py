"""Preemption in any order: no loops, nobody wronged, nothing promised twice, every nomination ends.

Controllers replace what is evicted, victims take their time to terminate, requests fail and
schedulers die.
"""

import random

import msgspec
import pytest

from alnair.model.action import PREEMPTED, Action, Bind, Evict
from alnair.model.workload import PodSpec
from kit import invariants, make
from kit.soak import cases
from kit.world import World

STEPS = 2500


class Unrest:
    """Random operations on a small cluster that is always too full."""

    def __init__(self, seed: int) -> None:
        self.chance, self.saving = random.Random(seed), random.Random(-1 - seed)
        self.world = World(seed=seed, check=False)
        self.world.stands_by = seed % 2 == 1
        self.world.graceful = True
        self.world.fault = self._fault
        self.failing = 0.05
        self.count = 0
        self.seen = 0
        self.preemptions = 0
        #: Who every pod ever was, by uid.
        self.known: dict[str, tuple[int, float]] = {}
        for i in range(6):
            self.world.put(make.node(f"n{i}", cpu=4000, gpus=2 * (i % 2), gpu_memory=16384))
        for i in range(2):
            self.world.budget(make.budget(f"b{i}", i, app="ab"[i]))

    def _fault(self, action: Action) -> str:
        return "injected" if self.chance.random() < self.failing else ""

    def spec(self) -> PodSpec:
        kind = self.chance.random()
        cpu = self.chance.choice((500, 1000, 2000, 3000))
        if kind < 0.2:
            return make.spec(cpu=100, slice_mib=self.chance.choice((4096, 12288)))
        if kind < 0.3:
            return make.spec(cpu=100, whole=self.chance.choice((1, 2)))
        return make.spec(cpu=cpu)

    def new_pod(self) -> None:
        self.count += 1
        self.world.create(
            make.pod(
                f"p{self.count}",
                self.spec(),
                created=self.world.now,
                started=self.world.now,
                priority=self.chance.randrange(5),
                preempts=self.chance.random() < 0.9,
                labels={"app": self.chance.choice("abc")},
                idle_since=self.chance.choice((0.0, 0.0, 0.0, self.world.now)),
                reclaimable=self.chance.choice(("", "idle")),
            )
        )

    def save(self) -> None:
        """Let some pod on a node say that it just saved its work, or that it will have."""
        placed = [p for p in self.world.pods.values() if p.node and not p.deleting]
        if placed and self.saving.random() < 0.5:
            pod = self.saving.choice(placed)
            when = self.world.now + self.saving.choice((0.0, -100.0, 1000.0))
            self.world.set_pod(msgspec.structs.replace(pod, saved_at=max(when, 1.0)))

    def new_gang(self) -> None:
        self.count += 1
        name, size = f"g{self.count}", self.chance.randrange(2, 5)
        gang = make.gang(name, size)
        if self.saving.random() < 0.5:
            gang = msgspec.structs.replace(gang, elastic_min=self.saving.randrange(1, size + 1))
        self.world.declare(gang)
        spare = self.chance.randrange(2)
        priority = self.chance.randrange(5)
        self.world.create(*make.members(name, size + spare, self.spec(), priority=priority))

    def terminate(self) -> None:
        """End some pod that is being deleted; its controller makes another one."""
        going = [p for p in self.world.pods.values() if p.deleting]
        if not going:
            return
        pod = self.chance.choice(going)
        self.world.delete_uid(pod.uid)
        if self.chance.random() < 0.8:
            self.replace(pod.uid)

    def replace(self, uid: str) -> None:
        pod = self.gone[uid]
        self.count += 1
        self.world.create(
            msgspec.structs.replace(
                pod,
                uid=f"u{self.count}",
                name=f"{pod.name.partition('~')[0]}~{self.count}",
                node="",
                nominated="",
                assignment=(),
                deleting=False,
                preempted=False,
                created=self.world.now,
                idle_since=0.0,
                started=0.0,
                saved_at=0.0,
            )
        )

    def delete(self) -> None:
        if self.world.pods:
            self.world.delete_uid(self.chance.choice(list(self.world.pods)))

    def step(self) -> None:
        self.world.step(deliver=self.chance.choice((1, 4, None)))
        self.judge()

    def carry_out(self) -> None:
        if self.world.outbox:
            self.world.carry_out(self.chance.randrange(len(self.world.outbox)))

    def advance(self) -> None:
        self.world.now += self.chance.choice((0.5, 2.0, 20.0, 400.0))
        self.save()

    def crash(self) -> None:
        requests = range(len(self.world.outbox))
        self.world.crash([n for n in requests if self.chance.random() < 0.5])

    def judge(self) -> None:
        """Fail if somebody was evicted for a pod that is not more important."""
        for pod in self.world.pods.values():
            self.known[pod.uid] = (pod.priority, pod.idle_since)
            self.gone[pod.uid] = pod
        for action in self.world.log[self.seen :]:
            if not isinstance(action, Evict) or action.reason != PREEMPTED:
                continue
            self.preemptions += 1
            priority, _ = self.known[action.message.split()[3]]
            victim, idle_since = self.known[action.pod.uid]
            idle = idle_since and self.world.now - idle_since >= 600
            assert victim < priority or (idle and victim == priority), action.message
        self.seen = len(self.world.log)

    gone: dict[str, object]

    def run(self, steps: int) -> None:
        self.gone = {}
        choices = [self.new_pod] * 3 + [self.new_gang, self.delete, self.delete]
        choices += [self.step] * 8 + [self.carry_out] * 8 + [self.terminate] * 4
        choices += [self.advance] * 2
        for number in range(steps):
            self.judge()
            self.chance.choice(choices)()
            if number % 50 == 0:
                invariants.check(self.world.engine)
            if number % 10 == 0:
                self.world.check_room()
            if number % 400 == 0:
                self.crash()

    def calm_down(self) -> int:
        """Let everything happen that still happens; returns how many rounds that took."""
        self.failing = 0.0
        for rounds in range(200):
            self.world.settle()
            self.judge()
            going = [p for p in self.world.pods.values() if p.deleting]
            if not going:
                return rounds
            for pod in going:
                self.world.delete_uid(pod.uid)
                self.replace(pod.uid)
        raise AssertionError("pods evict each other without end")


@pytest.mark.parametrize("seed", cases(3))
def test_unrest_ends_and_wrongs_nobody(seed: int) -> None:
    unrest = Unrest(seed)
    unrest.run(STEPS)
    unrest.calm_down()
    world = unrest.world
    invariants.check(world.engine)
    invariants.check_evaluations(world.engine)
    world.check_room()
    assert unrest.preemptions > 20
    assert not len(world.engine._preemption.nominations), "a nomination never ends"
    assert not [p.name for p in world.pods.values() if p.nominated and not p.node]
    before = len(world.log)
    world.stands_by = False  # a fresh engine tries everything
    world.restart()
    world.settle(0.0)
    assert not [a for a in world.log[before:] if isinstance(a, Bind | Evict)], "forgotten"
