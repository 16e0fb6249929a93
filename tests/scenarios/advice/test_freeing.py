"""Plans that free whole GPUs, against all that are possible on small clusters."""

import itertools
import random
from functools import cache

from msgspec.structs import replace

from alnair.model import names
from alnair.scheduler.advice.rebalance import Rebalance, RebalanceOutcome
from alnair.sim.whatif.pod_results import indices
from kit import invariants, make
from kit.world import World

GPUS, MEMORY = 4, 40
#: What a pod holds of each GPU of a node, in MiB of `MEMORY`, by GPU; a whole one is all of it.
Held = tuple[int, ...]


class Small:
    """A random small cluster: on each node some GPUs are held by pods, of which a few must stay."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.nodes = draw.choice([3, 4])
        self.wanted = draw.choice([3, 4])
        self.pods: list[tuple[int, Held, bool]] = []  # node, what it holds, may move
        for node in range(self.nodes):
            free = list(range(GPUS))
            draw.shuffle(free)
            while free and draw.random() < 0.75:
                kind = draw.choice([1, 1, 2, 3, "slice", "slice"])
                held = [0] * GPUS
                if kind == "slice":
                    slot = free.pop()
                    left = MEMORY
                    while left >= 10 and draw.random() < 0.7:
                        part = draw.choice([10, 20, 30])
                        if part <= left:
                            left -= part
                            one = [0] * GPUS
                            one[slot] = part
                            self.pods.append((node, tuple(one), draw.random() < 0.85))
                elif isinstance(kind, int) and kind <= len(free):
                    for _ in range(kind):
                        held[free.pop()] = MEMORY
                    self.pods.append((node, tuple(held), draw.random() < 0.85))

    def world(self, scheduler: str = names.SCHEDULER) -> World:
        world = World(
            *(
                make.node(f"n{i}", gpus=GPUS, gpu_memory=1024 * MEMORY, cpu=64_000)
                for i in range(self.nodes)
            )
        )
        for number, (node, held, may) in enumerate(self.pods):
            whole = sum(part == MEMORY for part in held)
            asked = make.spec(whole=whole) if whole else make.spec(slice_mib=1024 * sum(held))
            shares = tuple(
                make.share(make.gpu(f"n{node}", slot, memory_mib=1024 * MEMORY), 1024 * part)
                if part < MEMORY
                else make.share(make.gpu(f"n{node}", slot, memory_mib=1024 * MEMORY))
                for slot, part in enumerate(held)
                if part
            )
            pod = make.pod(f"p{number}", asked, node=f"n{node}", owned=may, scheduler=scheduler)
            world.create(replace(pod, assignment=(("main", shares),)))
        return world

    def fewest(self, nodes: int, most: int) -> int | None:
        """The fewest moves of all plans; None if more than `most` are needed."""
        movable = [i for i, (_, _, may) in enumerate(self.pods) if may]
        for number in range(min(most, len(movable)) + 1):
            for moved in itertools.combinations(movable, number):
                if self._can(moved, nodes):
                    return number
        return None

    def _can(self, moved: tuple[int, ...], nodes: int) -> bool:
        others = [[t for t in range(self.nodes) if t != self.pods[i][0]] for i in moved]
        stay = [
            tuple(
                sum(parts)
                for parts in zip(
                    *(h for i, (n, h, _) in enumerate(self.pods) if n == node and i not in moved),
                    (0,) * GPUS,
                    strict=True,
                )
            )
            for node in range(self.nodes)
        ]
        for targets in itertools.product(*others):
            free = [
                most_free(
                    tuple(sorted(stay[node])),
                    tuple(
                        sorted(
                            asks(self.pods[i][1])
                            for i, t in zip(moved, targets, strict=True)
                            if t == node
                        )
                    ),
                )
                for node in range(self.nodes)
            ]
            if min(free) >= 0 and sum(f >= self.wanted for f in free) >= nodes:
                return True
        return False


def asks(held: Held) -> int:
    """What a pod asks for: of one GPU, or a multiple of `MEMORY` for whole ones."""
    return sum(held)


@cache
def most_free(stay: Held, come: tuple[int, ...]) -> int:
    """How many GPUs of a node are free at best when these pods come; -1 if they do not fit."""
    if not come:
        return stay.count(0)
    first, rest = come[0], come[1:]
    best = -1
    if first >= MEMORY:
        count = first // MEMORY
        if stay.count(0) < count:
            return -1
        left = list(stay)
        for _ in range(count):
            left[left.index(0)] = MEMORY
        return most_free(tuple(sorted(left)), rest)
    for slot, used in enumerate(stay):
        if used + first <= MEMORY and (slot == 0 or stay[slot - 1] != used):
            left = [*stay[:slot], used + first, *stay[slot + 1 :]]
            best = max(best, most_free(tuple(sorted(left)), rest))
    return best


def plan(world: World, count: int, most: int, nodes: int = 1) -> RebalanceOutcome:
    world.settle()
    outcome = Rebalance(world.engine.view).free_gpus(count, most, nodes=nodes, spare=True)
    invariants.check(world.engine)
    return outcome


def test_plans_of_small_clusters_take_as_few_moves_as_any() -> None:
    """Measured over 300 such clusters with up to four moves: the fewest in each."""
    moves = 0
    for seed in range(40):
        small, nodes = Small(seed), 1 + seed % 2
        fewest = small.fewest(nodes, 3)
        if fewest == 0:
            continue
        outcome = plan(small.world(), small.wanted, 3, nodes)
        if fewest is None:
            assert outcome.problem
        else:
            assert fewest <= len(outcome.moves) <= 1.2 * fewest, (seed, outcome)
            moves += fewest
    assert moves > 5  # it was worth looking


def test_moves_carried_out_one_by_one_free_the_gpus_and_go_where_the_plan_says() -> None:
    led = 0
    for seed in (25, *range(100, 125)):
        small, nodes = Small(seed), 1 + seed % 2
        world = small.world(names.HIGH_PERFORMANCE if seed == 25 else names.SCHEDULER)
        outcome = plan(world, small.wanted, 4, nodes)
        targets = {move.target for move in outcome.moves}
        freed = [n for n in outcome.nodes if n not in targets]
        for move in outcome.moves:
            pod = world.pod(move.name)
            assert pod.node == move.source
            assert indices(pod.assignment) == move.source_gpus
            closed = {*freed, move.source}
            if not move.own:  # it has to be led there
                led += 1
                closed = {n for n in world.nodes if n != move.target}
            cordon(world, closed)
            world.delete(move.name)
            world.create(replace(pod, uid=f"{pod.uid}-2", node="", assignment=()))
            world.settle()
            again = world.pod(move.name)
            assert again.node == move.target
            assert indices(again.assignment) == move.target_gpus
            cordon(world, set())
        if not outcome.problem:
            for name in outcome.nodes:
                here = {"kubernetes.io/hostname": name}
                world.create(
                    make.pod(f"guest-{name}", make.spec(whole=small.wanted, selector=here))
                )
            world.settle()
            assert all(world.where(*(f"guest-{name}" for name in outcome.nodes)))
        world.check_room()
    assert led


def cordon(world: World, closed: set[str]) -> None:
    """Have these nodes take no pods, and the others take some."""
    for node in list(world.nodes.values()):
        world.put(replace(node, unschedulable=node.name in closed))
