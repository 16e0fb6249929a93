"""Stranded GPU in columns, against the plain definition; and what the plugin makes of it."""

import random

import msgspec
import numpy as np
import pytest

import make
from alnair.model.fragmentation import FreeNode, WorkloadClass, node_fragmentation
from alnair.model.workload import Pod
from alnair.scheduler.accounts import Accounts, Record, State
from alnair.scheduler.devices import Booking
from alnair.scheduler.evaluations import Evaluations
from alnair.scheduler.framework import Profile
from alnair.scheduler.plugins.fragmentation import Fragmentation
from alnair.scheduler.plugins.gates import SchedulingGates
from alnair.scheduler.plugins.priority import PrioritySort
from alnair.scheduler.profiles import registry
from alnair.scheduler.statement import Statement
from alnair.scheduler.stranded import Stranded
from alnair.scheduler.workload_mix import BATCH, WINDOW, PodClass, WorkloadMix

MODELS = ("T4", "A100")


class Case:
    """Random nodes of GPUs of 1,000 MiB, so that a MiB is a thousandth, and a random mix."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.accounts = Accounts()
        self.nodes: list[FreeNode] = []
        for row in range(12):
            count, model, cpu = chance.randrange(9), chance.choice(MODELS), chance.randrange(9)
            name = f"n{row}"
            gpus = [make.gpu(name, i, model, 1000) for i in range(count)]
            self.accounts.put_node(make.node(name, cpu=cpu * 1000, gpus=gpus))
            left = [1000] * count
            for slot in range(count):
                taken = chance.choice((0, 0, 300, 700, 1000))
                if not taken:
                    continue
                whole = taken == 1000
                record = Record(make.pod(f"p{row}-{slot}", make.spec(cpu=0)))
                booking = Booking(slot, whole=True) if whole else Booking(slot, taken)
                self.accounts.place(record, name, State.BOUND, 0.0, (booking,))
                left[slot] = 1000 - taken
            self.nodes.append(FreeNode(cpu * 1000, tuple(left), model if count else ""))
        parts = [chance.random() for _ in range(6)]
        self.classes, self.workload = [], []
        for part in parts:
            cpu, models = chance.randrange(5) * 1000, chance.choice(((), (), ("T4",)))
            whole = chance.choice((0, 1, 2, 4))
            milli = 1000 if whole else chance.choice((250, 500, 900))
            share = part / sum(parts)
            self.classes.append(PodClass(share, cpu, whole, 0 if whole else milli, 0, models))
            self.workload.append(WorkloadClass(share, cpu, whole or 1, milli, models))
        self.stranded = Stranded(tuple(self.classes), self.accounts.cluster)

    def oracle(self, row: int, node: FreeNode | None = None) -> float:
        return node_fragmentation(node or self.nodes[row], self.workload) / 1000


@pytest.mark.parametrize("seed", range(20))
def test_stranded_gpu_is_what_the_definition_says(seed: int) -> None:
    case = Case(seed)
    rows = slice(0, len(case.nodes))
    assert case.stranded.of(rows) == pytest.approx([case.oracle(r) for r in range(12)])


@pytest.mark.parametrize("seed", range(20))
def test_the_gain_of_a_placement_is_the_difference_that_it_makes(seed: int) -> None:
    case = Case(seed)
    rows = slice(0, len(case.nodes))
    part = make.spec(slice_mib=250).gpu
    pair = make.spec(whole=2).gpu
    assert part
    assert pair
    sliced = case.stranded.gain_of_slice(part, 500, rows)
    whole = case.stranded.gain_of_whole(pair, 500, rows)
    fits = case.stranded.fits(part, rows)
    compared = 0
    for row, node in enumerate(case.nodes):
        before = case.oracle(row)
        for slot in np.flatnonzero(fits[:, row]):
            left = list(node.gpu_milli)
            left[slot] -= 250
            after = FreeNode(node.cpu_milli - 500, tuple(left), node.model)
            assert sliced[slot, row] == pytest.approx(before - case.oracle(row, after))
            compared += 1
        free = [i for i, milli in enumerate(node.gpu_milli) if milli == 1000]
        if len(free) >= 2:
            left = list(node.gpu_milli)
            left[free[0]] = left[free[1]] = 0
            after = FreeNode(node.cpu_milli - 500, tuple(left), node.model)
            assert whole[row] == pytest.approx(before - case.oracle(row, after))
            compared += 1
    assert compared > 5
    few = np.array([3, 5])
    assert case.stranded.gain_of_slice(part, 500, few) == pytest.approx(sliced[:, few])


def test_the_mix_is_the_classes_of_the_last_pods_made_anew_in_batches() -> None:
    mix = WorkloadMix()
    common, rare = make.spec(whole=1), make.spec(slice_mib=1000)
    changes = [mix.see(common) for _ in range(BATCH)]
    assert changes == [False] * (BATCH - 1) + [True]
    assert [(c.share, c.whole) for c in mix.classes] == [(1.0, 1)]
    assert not any(mix.see(make.spec()) for _ in range(3 * BATCH)), "pods without GPUs do not count"
    assert not any(mix.see(common) for _ in range(BATCH)), "the same mix is no news"
    for _ in range(WINDOW):
        mix.see(rare)
    assert [c.memory_mib for c in mix.classes] == [1000], "what is long ago is forgotten"


def fragmenting() -> Profile:
    make_plugin = registry()
    names = ("NodeResourcesFit", "GpuShare")
    parts = [PrioritySort(), SchedulingGates(), *(make_plugin[n]() for n in names)]
    return Profile("test", [*parts, Fragmentation()], {"Fragmentation": 50})


def placed(accounts: Accounts, pod: Pod) -> tuple[str, list[int]]:
    record = Record(msgspec.structs.replace(pod, scheduler="test"))
    assert (
        Statement(accounts, Evaluations(accounts.cluster), 0.0).place(record, fragmenting()) is None
    )
    return record.node, [b.slot for b in record.bookings]


def test_a_slice_goes_where_it_strands_least_for_what_pods_ask_for() -> None:
    accounts = Accounts()
    for name in ("pair", "used"):
        accounts.put_node(make.node(name, gpus=2, gpu_memory=1000))
    tenant = Record(make.pod("tenant", make.spec(slice_mib=500)))
    accounts.place(tenant, "used", State.BOUND, 0.0, (Booking(1, 500),))
    for _ in range(BATCH):
        accounts.notice(make.pod("pair", make.spec(whole=2)))
    assert placed(accounts, make.pod("p", make.spec(slice_mib=400))) == ("used", [1])
