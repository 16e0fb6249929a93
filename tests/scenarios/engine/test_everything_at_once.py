"""Gangs, priorities, quotas, racks, time limits, lost nodes, kills: no order of them stops it.

At the end a new engine, which has waited for nothing, finds no free room that the old overlooked.
"""

import random

import msgspec
import pytest

from alnair.model import names
from alnair.model.action import Action
from alnair.model.quota import Quota
from alnair.model.workload import PodSpec
from kit import invariants, make
from kit.world import World

RACK = "topology.kubernetes.io/rack"
SCHEDULERS = sorted(names.SCHEDULERS)


class Muddle:
    """Random operations that use every feature at once."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(seed=seed, check=False)
        self.world.graceful = bool(seed % 2)
        self.world.fault = self._fault
        self.failing = 0.1
        self.count = 0
        for i in range(5):
            self.node(i)

    def _fault(self, action: Action) -> str:
        return "injected" if self.chance.random() < self.failing else ""

    def node(self, i: int) -> None:
        size = {"cpu": 4000 + 2000 * (i % 3), "gpus": 2 * (i % 3)}
        self.world.put(make.node(f"n{i}", **size, labels={RACK: f"r{i % 2}"}))

    def spec(self) -> PodSpec:
        kind = self.chance.random()
        if kind < 0.3:
            size = self.chance.choice((4096, 12288))
            workload = "train" if size == 4096 else ""  # no draw more: seeds mean what they did
            spec = make.spec(slice_mib=size, compute=30)
            return msgspec.structs.replace(spec, workload=workload)
        if kind < 0.6:
            return make.spec(whole=self.chance.choice((1, 2)))
        return make.spec(cpu=self.chance.choice((500, 3000)))

    def new_pod(self) -> None:
        self.count += 1
        self.world.create(
            make.pod(
                f"p{self.count}",
                self.spec(),
                created=self.world.now,
                scheduler=self.chance.choice(SCHEDULERS),
                namespace=self.chance.choice(("default", "a", "b")),
                priority=self.chance.randrange(3),
                gated=self.chance.random() < 0.1,
            )
        )

    def new_gang(self) -> None:
        self.count += 1
        name, size = f"g{self.count}", self.chance.randrange(1, 6)
        self.world.declare(make.gang(name, size, required=self.chance.choice(("", RACK))))
        priority, there = self.chance.randrange(3), max(1, size + self.chance.randrange(-1, 2))
        self.world.create(*make.members(name, there, self.spec(), priority=priority))

    def change_gang(self) -> None:
        if not self.world.gangs:
            return
        _, name = self.chance.choice(list(self.world.gangs))
        if self.chance.random() < 0.4:
            self.world.undeclare(name)
        else:
            self.world.declare(make.gang(name, self.chance.choice((1, 2, 50))))

    def change_pod(self) -> None:
        if not self.world.pods:
            return
        pod = self.chance.choice(list(self.world.pods.values()))
        if pod.deleting or self.chance.random() < 0.5:
            self.world.delete_uid(pod.uid)
            return
        changes = ({"gated": False}, {"deleting": True}, {"priority": 2}, {"group": ""})
        self.world.set_pod(msgspec.structs.replace(pod, **self.chance.choice(changes)))

    def change_node(self) -> None:
        i = self.chance.randrange(6)
        if f"n{i}" in self.world.nodes and self.chance.random() < 0.5:
            self.world.remove(f"n{i}")
        else:
            self.node(i)

    def change_quota(self) -> None:
        least, most = self.chance.choice((0, 3000, 9000)), self.chance.choice((0, 2000, 20000))
        value = Quota("q", {"cpu": least}, {"cpu": most})
        self.world.set_object("ElasticQuota", "q", value, self.chance.choice("ab"))

    def crash(self) -> None:
        count = len(self.world.outbox)
        self.world.crash(done=[i for i in range(count) if self.chance.random() < 0.5])

    def wait(self) -> None:
        self.world.now += self.chance.choice((0.1, 1.0, 5.0, 40.0, 310.0))

    def happen(self) -> None:
        operations = {
            self.new_pod: 30,
            self.new_gang: 10,
            self.change_gang: 6,
            self.change_pod: 15,
            self.change_node: 6,
            self.change_quota: 4,
            self.crash: 3,
            self.wait: 10,
        }
        self.chance.choices(list(operations), list(operations.values()))[0]()
        self.world.step()
        while self.world.outbox and self.chance.random() < 0.7:
            self.world.carry_out(self.chance.randrange(len(self.world.outbox)))

    def calm(self) -> None:
        self.failing = 0.0
        self.world.settle(400)
        while going := [p.uid for p in self.world.pods.values() if p.deleting]:
            for uid in going:
                self.world.delete_uid(uid)
            self.world.settle(400)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_it_goes_on_and_overlooks_nothing(seed: int) -> None:
    muddle = Muddle(seed)
    for step in range(300):
        muddle.happen()
        if step % 30 == 0:
            invariants.check(muddle.world.engine)
    muddle.calm()
    invariants.check(muddle.world.engine)
    muddle.world.check_room()
    evicted = muddle.world.evicted()
    placed = {p.uid for p in muddle.world.pods.values() if p.node}
    muddle.world.restart()
    muddle.world.settle(400)
    new = {p.uid for p in muddle.world.pods.values() if p.node} - placed
    assert not new or muddle.world.evicted() - evicted, "only room that victims leave is new"
