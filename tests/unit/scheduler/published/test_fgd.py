"""The published scores: FGD's tables against the definition of F, and which GPU it takes."""

import random

import numpy as np
import pytest

from alnair.model.workload import Pod
from alnair.scheduler.published import MIB_PER_MILLI
from alnair.scheduler.published.fgd import PublishedFGD
from alnair.scheduler.published.fragmentation import FreeNode, WorkloadClass, node_fragmentation
from alnair.scheduler.published.fragmentation_rounding import Rounding
from alnair.scheduler.published.node_fragmentation import Strands
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.gpus.devices import Booking
from alnair.sim.placement import trace_values
from alnair.traces.arrivals import Arrival
from alnair.traces.openb import TraceNode, TracePod

MODELS = ("T4", "G2", "")


class Cluster:
    """Random nodes, some of them in use, as columns and as the definition sees them."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.accounts = Accounts()
        self.free: list[FreeNode] = []
        self.pods = trace_values.TracePodMaker("any")
        for i in range(8):
            model = draw.choice(MODELS)
            gpus = draw.choice((1, 2, 4, 8)) if model else 0
            node = TraceNode(f"n{i}", draw.choice((8000, 16_000, 96_000)), 10**6, gpus, model)
            self.accounts.put_node(trace_values.node(node))
            left = [1000] * gpus
            cpu = node.cpu_milli
            for slot in range(gpus):
                if draw.random() < 0.6:
                    milli = draw.choice((1000, 810, 470, 1))
                    cpu -= 500
                    left[slot] -= milli
                    self.book(f"{i}-{slot}", f"n{i}", slot, milli, 500)
            self.free.append(FreeNode(cpu, tuple(left), model))
        self.workload = tuple(
            WorkloadClass(
                count / 100,
                draw.choice((0, 4000, 8000, 12_000)),
                gpus,
                1000 if gpus > 1 else draw.choice((1000, 810, 160)) * (gpus > 0),
                draw.choice(((), ("T4",), ("G2", "A10"))) if gpus else (),
                count,
            )
            for count, gpus in ((40, 1), (25, 1), (15, 0), (12, 2), (5, 8), (3, 1))
        )

    def pod(self, cpu: int, gpus: int, milli: int) -> Pod:
        listed = TracePod("p", cpu, 0, gpus, milli)
        return self.pods.of(Arrival(f"p{self.draw.random()}", listed), 0.0)

    def book(self, uid: str, node: str, slot: int, milli: int, cpu: int) -> None:
        pod = self.pods.of(Arrival(uid, TracePod(uid, cpu, 0, 1, milli)), 0.0)
        whole = milli == 1000
        booking = Booking(slot, 0 if whole else milli * MIB_PER_MILLI, whole=whole)
        record = self.accounts.records[uid] = Record(pod)
        self.accounts.place(record, node, State.BOUND, 0.0, (booking,))

    def fall(self, row: int, cpu: int, slots: list[int], milli: int) -> float:
        """By how much F of a node falls, by the definition."""
        before = self.free[row]
        left = list(before.gpu_milli)
        for slot in slots:
            left[slot] -= milli
        after = FreeNode(before.cpu_milli - cpu, tuple(left), before.model)
        one, other = (node_fragmentation(n, self.workload) for n in (before, after))
        return one - other


def score(fall: float) -> float:
    return float(np.floor(100.0 / (1.0 + np.exp(-round(fall, 6) / 1000.0))))


@pytest.mark.parametrize("seed", range(12))
def test_the_tables_say_what_the_definition_of_f_says(seed: int) -> None:
    cluster = Cluster(seed)
    strands = Strands(cluster.workload, cluster.accounts.cluster)
    strands.refresh()
    found = strands.fragmented / strands.target.pods
    expected = [node_fragmentation(free, cluster.workload) for free in cluster.free]
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(12))
def test_fgd_scores_by_the_fall_of_f_and_takes_the_lowest_of_the_best_gpus(seed: int) -> None:
    cluster = Cluster(seed)
    plugin = PublishedFGD(cluster.workload)
    for cpu, gpus, milli in ((4000, 1, 160), (1000, 1, 810), (500, 1, 1000), (0, 2, 1000)):
        spec = cluster.pod(cpu, gpus, milli).spec
        scores = plugin.score(spec, cluster.accounts.cluster)(slice(0, 8))
        gpu_scores = plugin.gpus(spec, cluster.accounts.cluster)
        for row, free in enumerate(cluster.free):
            fits = [s for s, left in enumerate(free.gpu_milli) if left >= milli]
            if len(fits) < gpus or free.cpu_milli < cpu:
                continue
            if gpus == 1 and milli < 1000:
                by_gpu = [score(cluster.fall(row, cpu, [slot], milli)) for slot in fits]
                assert scores[row] == max(by_gpu)
                assert gpu_scores is not None
                chosen = int(gpu_scores(slice(row, row + 1))[:, 0].argmax())
                assert chosen == fits[by_gpu.index(max(by_gpu))]
            else:
                assert scores[row] == score(cluster.fall(row, cpu, fits[:gpus], milli))


@pytest.mark.parametrize("seed", range(4))
def test_the_rounded_sums_are_the_same_number_but_for_its_last_bits(seed: int) -> None:
    cluster = Cluster(seed)
    rounding = Rounding(cluster.workload, MODELS[:2])
    for free in cluster.free:
        model = -1 if free.model == "" else MODELS.index(free.model)
        level = rounding.level(np.array([float(free.cpu_milli)])).item()
        found = rounding.fragmented(model, level, free.gpu_milli)
        assert found == pytest.approx(node_fragmentation(free, cluster.workload))


def test_fgd_ties_nodes_whose_f_a_pod_without_gpus_leaves_as_it_is() -> None:
    cluster = Cluster(3)
    plugin = PublishedFGD((WorkloadClass(1.0, 0, 1, 160, (), 7),))
    scores = plugin.score(cluster.pod(500, 0, 0).spec, cluster.accounts.cluster)
    assert set(scores(slice(0, 8)).tolist()) == {50.0}


def test_scores_follow_what_is_booked_on_a_row() -> None:
    cluster = Cluster(5)
    plugin = PublishedFGD(cluster.workload)
    spec = cluster.pod(1000, 1, 160).spec
    gain = plugin.score(spec, cluster.accounts.cluster)
    gain(slice(0, 8))
    row, slot = next(
        (row, free.gpu_milli.index(1000))
        for row, free in enumerate(cluster.free)
        if 1000 in free.gpu_milli and free.cpu_milli >= 2000
    )
    cluster.book("late", f"n{row}", slot, 470, 1000)
    fresh = PublishedFGD(cluster.workload).score(spec, cluster.accounts.cluster)
    assert gain(slice(0, 8)).tolist() == fresh(slice(0, 8)).tolist()
