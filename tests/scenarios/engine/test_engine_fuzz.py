"""Anything in any order: the invariants hold, and in the end all that fits is placed."""

import random

import msgspec
import pytest

from alnair.model.action import Action, Bind
from alnair.model.gpu_demand import ContainerGpus
from alnair.model.workload import PodSpec, Toleration
from kit import invariants, make
from kit.world import World

MODELS = ("A100", "T4")


class Chaos:
    """Random operations on a world; only what is possible is done."""

    def __init__(self, seed: int, *, churn: bool, foreign: bool) -> None:
        self.chance = random.Random(seed)
        self.churn = churn
        self.foreign = foreign
        self.count = 0
        self.nodes = 0
        self.world = World(seed=seed)
        self.world.stands_by = seed % 2 == 1
        self.failing = 0.0
        self.world.fault = self._fault
        for _ in range(4):
            self.new_node()

    def _fault(self, action: Action) -> str:
        return "injected" if self.chance.random() < self.failing else ""

    def run(self, operations: int) -> None:
        self.failing = 0.15
        choices = [self.new_pod] * 5 + [self.new_gang] * 2 + [self.step] * 12
        choices += [self.carry_out] * 12 + [self.delete, self.finish, self.late_member]
        choices += [self.edit, self.gate, self.regroup, self.advance, self.advance]
        choices += [self.change_gang, self.mark_for_deletion]
        if self.churn:
            choices += [self.new_node, self.remove_node, self.change_node, self.crash, self.resize]
        if self.foreign:
            choices += [self.foreign_pod] * 2
        for _ in range(operations):
            self.chance.choice(choices)()
        self.failing = 0.0
        for node in list(self.world.nodes.values()):
            if any(gpu.problem for gpu in node.gpus):
                self.world.put(make.unhealthy(node))
        self.world.settle()

    # --- operations -------------------------------------------------------------------------------

    def spec(self) -> PodSpec:
        chance = self.chance
        cpu = chance.choice((100, 500, 1000, 2000))
        kind = chance.randrange(7)
        if kind == 0:
            return make.spec(cpu=cpu, whole=chance.choice((1, 1, 2, 4)))
        if kind in (1, 2):
            compute = chance.choice((0, 10, 30, 50, 100))
            mib = chance.choice((1024, 8192, 20480))
            return make.spec(cpu=cpu, slice_mib=mib, compute=compute, soft=chance.random() < 0.4)
        if kind == 3:
            return make.spec(cpu=cpu, whole=1, models=chance.choice(MODELS))
        if kind == 4:
            both = [
                ContainerGpus("a", {"nvidia.com/gpu": 1}),
                ContainerGpus("b", {"alnair/vgpu-memory": 4096, "alnair/vgpu-compute": 20}),
            ]
            return make.spec(cpu=cpu, containers=both)
        if kind == 5:
            return make.spec(cpu=cpu, selector={"zone": chance.choice("ab")})
        return make.spec(cpu=cpu)

    def new_pod(self) -> None:
        self.count += 1
        self.world.create(
            make.pod(
                f"p{self.count}",
                self.spec(),
                created=self.world.now,
                priority=self.chance.choice((0, 0, 0, 10)),
                gated=self.chance.random() < 0.1,
            )
        )

    def new_gang(self) -> None:
        self.count += 1
        size = self.chance.randrange(1, 5)
        name = f"g{self.count}"
        gang = make.gang(
            name,
            size,
            timeout=self.chance.choice((5, 60)),
            required=self.chance.choice(("", "", "", "zone")),
            preferred=self.chance.choice(((), (), ("kubernetes.io/hostname", "zone"))),
            min_resources=self.chance.choice((None, None, {"cpu": 2000})),
        )
        pods = make.members(name, size + self.chance.randrange(-1, 2), self.spec())
        if self.chance.random() < 0.5:
            self.world.create(*pods)
            self.world.declare(gang)
        else:
            self.world.declare(gang)
            self.world.create(*pods)

    def late_member(self) -> None:
        if self.world.gangs:
            self.count += 1
            _, name = self.chance.choice(list(self.world.gangs))
            self.world.create(make.pod(f"{name}-late{self.count}", self.spec(), group=name))

    def new_node(self) -> None:
        self.nodes += 1
        gpus = self.chance.choice((0, 2, 4))
        self.world.put(
            make.node(
                f"n{self.nodes}",
                cpu=self.chance.choice((2000, 4000)),
                gpus=gpus,
                model=self.chance.choice(MODELS),
                gpu_memory=24576,
                factor=self.chance.choice((1.0, 1.0, 1.5)),
                labels={"zone": self.chance.choice("ab")},
            )
        )

    def remove_node(self) -> None:
        if len(self.world.nodes) > 2:
            self.world.remove(self.chance.choice(list(self.world.nodes)))

    def change_node(self) -> None:
        node = self.chance.choice(list(self.world.nodes.values()))
        how = self.chance.randrange(6)
        if how == 0:
            node = msgspec.structs.replace(node, unschedulable=not node.unschedulable)
        elif how == 1:
            node = msgspec.structs.replace(
                node, labels={**node.labels, "zone": self.chance.choice("abc")}
            )
        elif how == 2:
            node = msgspec.structs.replace(node, gpus=tuple(reversed(node.gpus)))
        elif how == 3:
            problem = "" if node.problem else "unreadable for a while"
            node = msgspec.structs.replace(node, problem=problem)
        elif how == 4 and node.gpus:
            sick = self.chance.sample(range(len(node.gpus)), self.chance.randrange(2))
            node = make.unhealthy(node, *sick)
        else:
            more = {**node.allocatable, "cpu": node.allocatable["cpu"] + 500}
            node = msgspec.structs.replace(node, allocatable=more)
        self.world.put(node)

    def some_pod(self, **wanted: object) -> str | None:
        found = [
            p.name
            for p in self.world.pods.values()
            if all(getattr(p, k) == v for k, v in wanted.items())
        ]
        return self.chance.choice(found) if found else None

    def delete(self) -> None:
        if name := self.some_pod():
            self.world.delete(name)

    def finish(self) -> None:
        bound = [p.name for p in self.world.pods.values() if p.node and not p.finished]
        if bound:
            self.world.update(self.chance.choice(bound), finished=True)

    def edit(self) -> None:
        if name := self.some_pod(node=""):
            spec = self.world.pod(name).spec
            more = (*spec.tolerations, Toleration(f"k{self.count}", "Exists"))
            self.world.update(name, spec=msgspec.structs.replace(spec, tolerations=more))

    def gate(self) -> None:
        if name := self.some_pod(gated=True):
            self.world.update(name, gated=False)

    def regroup(self) -> None:
        if (name := self.some_pod(node="")) and self.world.gangs:
            _, group = self.chance.choice(list(self.world.gangs))
            self.world.update(name, group=self.chance.choice(("", group)))

    def change_gang(self) -> None:
        """Give a gang another minimum, or take its PodGroup away."""
        if not self.world.gangs:
            return
        gang = self.chance.choice(list(self.world.gangs.values()))
        if self.chance.random() < 0.3:
            self.world.undeclare(gang.name)
        else:
            fewer = self.chance.randrange(1, 5)
            self.world.declare_exactly(msgspec.structs.replace(gang, min_member=fewer))

    def mark_for_deletion(self) -> None:
        if name := self.some_pod(deleting=False):
            self.world.update(name, deleting=True)

    def resize(self) -> None:
        """Halve a running pod's CPU in place."""
        running = [p for p in self.world.pods.values() if p.node and not p.finished]
        if running:
            pod = self.chance.choice(running)
            requests = tuple((k, n // 2 if k == "cpu" else n) for k, n in pod.spec.requests)
            spec = msgspec.structs.replace(
                pod.spec, requests=tuple((k, n) for k, n in requests if n)
            )
            self.world.update(pod.name, spec=spec)

    def foreign_pod(self) -> None:
        self.count += 1
        cpu, gpus = self.chance.choice(((500, 0), (1500, 0), (100, 1), (100, 2)))
        pod = make.pod(f"f{self.count}", make.spec(cpu=cpu, whole=gpus))
        self.world.foreign(pod, self.chance.choice(list(self.world.nodes)))

    def step(self) -> None:
        self.world.step(
            limit=self.chance.choice((0, 1, 8)), deliver=self.chance.choice((1, 3, None))
        )

    def carry_out(self) -> None:
        if self.world.outbox:
            self.world.carry_out(self.chance.randrange(len(self.world.outbox)))

    def advance(self) -> None:
        self.world.now += self.chance.choice((0.1, 1.0, 5.0, 20.0))

    def crash(self) -> None:
        requests = range(len(self.world.outbox))
        self.world.crash([n for n in requests if self.chance.random() < 0.5])


def nothing_was_forgotten(world: World) -> None:
    """A fresh engine, which tries everything, finds nothing more to bind."""
    world.stands_by = False
    world.restart()
    before = len(world.log)
    world.settle(0.0)
    late = [a.pod.name for a in world.log[before:] if isinstance(a, Bind)]
    assert not late, f"{late} could have been placed"


@pytest.mark.parametrize("seed", range(12))
def test_pods_and_gangs_with_failures_leave_nothing_behind(seed: int) -> None:
    chaos = Chaos(seed, churn=False, foreign=False)
    chaos.run(150)
    invariants.check_evaluations(chaos.world.engine)
    chaos.world.check_room()
    chaos.world.settle()
    nothing_was_forgotten(chaos.world)


@pytest.mark.parametrize("seed", range(12))
def test_node_churn_and_crashes_leave_nothing_behind(seed: int) -> None:
    chaos = Chaos(seed, churn=True, foreign=False)
    chaos.run(200)
    invariants.check_evaluations(chaos.world.engine)
    chaos.world.check_room()
    nothing_was_forgotten(chaos.world)


@pytest.mark.parametrize("seed", range(12))
def test_another_scheduler_on_the_same_nodes_leaves_nothing_behind(seed: int) -> None:
    chaos = Chaos(seed, churn=True, foreign=True)
    chaos.run(200)
    invariants.check_evaluations(chaos.world.engine)
    chaos.world.check_room()
    nothing_was_forgotten(chaos.world)
