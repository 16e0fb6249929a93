"""Decisions do not depend on how Python orders sets of strings, which differs from run to run."""

import os
import random
import subprocess
import sys
from pathlib import Path

from alnair.model import names
from alnair.model.quota import Quota
from alnair.model.workload import Pod
from kit import make
from kit.soak import cases
from kit.world import World

ROUNDS = 150
RACK = names.TOPOLOGY_PREFIX + "rack"


class Script:
    """Gangs, preemption, quotas, images and zones, in an order that only the seed decides."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(seed=seed, check=False)
        self.world.graceful = True
        self.made = 0
        for number in range(8):
            labels = {RACK: f"r{number % 3}", "topology.kubernetes.io/zone": f"z{number % 4}"}
            self.world.put(make.node(f"n{number}", cpu=6000, gpus=number % 5, labels=labels))
        for number, namespace in enumerate(("a", "b", "c")):
            bounds = ({names.GPU: 2 + number}, {names.GPU: 8})
            self.world.set_object("ElasticQuota", "team", Quota("team", *bounds), namespace)

    def pod(self) -> Pod:
        self.made += 1
        chance = self.chance
        work = make.spec(
            cpu=chance.choice((200, 1500)),
            whole=chance.choice((0, 1, 2)),
            slice_mib=chance.choice((0, 0, 8192)),
        )
        namespace = chance.choice(("a", "b", "c", "free", "default"))
        return make.pod(
            f"p{self.made}",
            work,
            namespace=namespace,
            priority=chance.randrange(3),
            created=self.world.now,
            labels={"app": chance.choice("xyz")},
        )

    def gang(self) -> None:
        self.made += 1
        name, size = f"g{self.made}", self.chance.randrange(2, 6)
        required = RACK if self.chance.random() < 0.3 else ""
        self.world.declare(make.gang(name, size, timeout=20, required=required))
        work = make.spec(cpu=500, whole=self.chance.choice((0, 1)))
        priority = self.chance.randrange(3)
        self.world.create(*make.members(name, size, work, priority=priority))

    def run(self) -> None:
        world, chance = self.world, self.chance
        for number in range(ROUNDS):
            world.create(*(self.pod() for _ in range(chance.randrange(3))))
            if chance.random() < 0.3:
                self.gang()
            for _ in range(3):
                world.step()
                for _ in range(chance.choice((0, 3, 50))):
                    if world.outbox:
                        world.carry_out(chance.randrange(len(world.outbox)))
            for pod in list(world.pods.values()):
                if pod.deleting or (pod.node and chance.random() < 0.05):
                    world.delete_uid(pod.uid)
            if number % 25 == 24:
                world.crash([n for n in range(len(world.outbox)) if chance.random() < 0.5])
            world.now += chance.choice((0.2, 1.0, 15.0))


def actions(hash_seed: int) -> str:
    here = Path(__file__)
    path = os.pathsep.join((str(here.parents[2]), *sys.path))
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path}
    command = [sys.executable, str(here)]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_a_run_is_the_same_whatever_the_hash_seed() -> None:
    one, other = actions(1), actions(2)
    kinds = {line.partition("(")[0] for line in one.splitlines()}
    assert kinds >= {"Bind", "Evict", "Nominate", "Report", "WritePlan"}
    assert one == other


if __name__ == "__main__":
    for script in map(Script, cases(2)):
        script.run()
        print(*script.world.log, sep="\n")
