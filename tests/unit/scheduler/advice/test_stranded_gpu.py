"""Stranded GPU in columns, against the plain definition."""

import random

import pytest

from alnair.scheduler.advice.stranded_gpu import PodClass, Stranded
from alnair.scheduler.published.fragmentation import FreeNode, WorkloadClass, node_fragmentation
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.gpus.devices import Booking
from kit import make

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
