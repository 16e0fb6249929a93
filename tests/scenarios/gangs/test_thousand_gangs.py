"""A thousand gangs over a cluster that is much too small, with kills and lost nodes.

Each gang alone would fit the empty cluster. So in the end every one of them has run, whatever was
killed or lost meanwhile, and none was ever there in part for longer than a commit takes.
"""

import random

import msgspec
import pytest

from alnair.model import names
from alnair.model.workload import Pod, PodSpec
from kit import make
from kit.soak import cases
from kit.world import World

RACK = names.TOPOLOGY_PREFIX + "rack"
NODES, GPUS, GANGS = 24, 4, 250
TIMEOUT = 20
#: Seconds that a gang may be there in part: until schedulers that died over it every few seconds
#: have completed or evicted it. A commit that nothing cuts short takes none.
PATIENCE = TIMEOUT + 10.0


class Training:
    """A gang with its owner, which makes lost pods anew and ends when it has run its time."""

    def __init__(self, world: World, name: str, chance: random.Random) -> None:
        self.world = world
        self.name = name
        self.minimum = chance.randrange(1, 9)
        self.size = self.minimum + chance.choice((0, 0, 0, 1, 2))
        self.work: PodSpec = make.spec(
            cpu=chance.choice((500, 1000, 1900)), whole=chance.choice((1, 1, 1, 2))
        )
        self.duration = chance.randrange(2, 15)
        self.pods: dict[str, str] = {}  # uid by name
        self.made = 0
        self.complete_at = 0.0
        self.partial_since = 0.0
        world.declare(
            make.gang(
                name,
                self.minimum,
                timeout=TIMEOUT,
                created=world.now,
                preferred=[RACK] if chance.random() < 0.3 else (),
                required=RACK if self.minimum * 2 <= 4 * GPUS and chance.random() < 0.2 else "",
            )
        )

    def here(self) -> list[Pod]:
        return [self.world.pods[uid] for uid in self.pods.values()]

    def look_after(self) -> bool:
        """Make lost pods anew; returns whether the work is done."""
        world = self.world
        for name, uid in list(self.pods.items()):
            if uid not in world.pods:
                del self.pods[name]
        bound = sum(bool(p.node) for p in self.here())
        if bound >= self.minimum:
            self.complete_at = self.complete_at or world.now
            self.partial_since = 0.0
        elif bound and not self.complete_at:
            self.partial_since = self.partial_since or world.now
            stuck = world.now - self.partial_since
            assert stuck <= PATIENCE, f"{self.name} is there in part for {stuck:g} s"
        else:
            self.partial_since = 0.0
        if self.complete_at and world.now >= self.complete_at + self.duration:
            for uid in self.pods.values():
                world.delete_uid(uid)
            world.undeclare(self.name)
            return True
        while len(self.pods) < self.size:
            self.made += 1
            pod = make.pod(f"{self.name}-{self.made}", self.work, group=self.name)
            world.create(msgspec.structs.replace(pod, created=world.now))
            self.pods[pod.name] = pod.uid
        return False


class Trouble:
    """Kills the scheduler and loses nodes, now and then."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.chance = chance
        self.kills = self.losses = 0
        self._back: list[tuple[float, str]] = []

    def strike(self) -> None:
        world, chance = self.world, self.chance
        if chance.random() < 0.06:
            self.kills += 1
            world.crash([n for n in range(len(world.outbox)) if chance.random() < 0.5])
        if chance.random() < 0.03 and len(world.nodes) > NODES - 4:
            self.losses += 1
            name = chance.choice(sorted(world.nodes))
            world.remove(name)
            for pod in [p for p in world.pods.values() if p.node == name]:
                world.delete_uid(pod.uid)
            self._back.append((world.now + chance.randrange(5, 40), name))
        for when, name in list(self._back):
            if world.now >= when:
                self._back.remove((when, name))
                world.put(node(name))


def node(name: str) -> make.Node:
    rack = f"r{int(name[1:]) % 6}"
    return make.node(name, cpu=8000, gpus=GPUS, labels={RACK: rack})


@pytest.mark.parametrize("seed", cases(1))
def test_every_gang_runs_in_the_end_and_none_stays_in_part(seed: int) -> None:
    chance = random.Random(seed)
    world = World(*(node(f"n{i}") for i in range(NODES)), seed=seed, check=False)
    trouble = Trouble(world, chance)
    running: list[Training] = []
    made = done = 0
    for tick in range(6000):
        for _ in range(min(8, GANGS - made)):
            made += 1
            running.append(Training(world, f"g{made}", chance))
        still = [one for one in running if not one.look_after()]
        done += len(running) - len(still)
        running = still
        if done == GANGS:
            break
        for _ in range(4):
            world.step()
            for _ in range(chance.choice((0, 2, 8, 100))):
                if world.outbox:
                    world.carry_out(chance.randrange(len(world.outbox)))
            trouble.strike()
        if tick % 4 == 0:
            world.check_room()
        world.now += 1.0
    left = [(one.name, one.minimum, one.work) for one in running]
    assert not left, f"after {world.now - 1000:g} s these have not run: {left[:5]}"
    assert trouble.kills > 20
    assert trouble.losses > 5
