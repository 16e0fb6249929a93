"""F of FGD: cases by hand, and the published value of the empty cluster."""

import pytest

from alnair.scheduler.published.fragmentation import (
    FreeNode,
    WorkloadClass,
    fragmentation,
    node_fragmentation,
    target_workload,
)
from alnair.traces import openb_files
from alnair.traces.openb import TracePod

SHARED = WorkloadClass(1.0, 4000, 1, 600)


@pytest.mark.parametrize(
    ("node", "wanted", "expected"),
    [
        (FreeNode(8000, (1000, 500)), SHARED, 500),  # the second GPU is too small
        (FreeNode(8000, (600, 599)), SHARED, 599),  # at the limit
        (FreeNode(3999, (1000, 500)), SHARED, 1500),  # no CPU: all of it is of no use
        (FreeNode(4000, (1000, 500)), SHARED, 500),  # just enough CPU
        (FreeNode(8000, (500, 400)), SHARED, 900),  # no GPU is large enough
        (FreeNode(8000, ()), SHARED, 0),  # nothing free, nothing stranded
        (FreeNode(8000, (0, 0)), SHARED, 0),
        (FreeNode(8000, (1000, 1000)), WorkloadClass(1.0, 1, 0, 0), 2000),  # wants no GPU
        (FreeNode(8000, (1000, 1000, 200)), WorkloadClass(1.0, 1, 2, 1000), 200),
        (FreeNode(8000, (1000, 999)), WorkloadClass(1.0, 1, 2, 1000), 1999),
        (FreeNode(8000, (1000,), "T4"), WorkloadClass(1.0, 1, 1, 100, ("T4", "A10")), 0),
        (FreeNode(8000, (1000,), "G2"), WorkloadClass(1.0, 1, 1, 100, ("T4", "A10")), 1000),
    ],
)
def test_what_a_class_cannot_use_of_a_node(
    node: FreeNode, wanted: WorkloadClass, expected: float
) -> None:
    assert node_fragmentation(node, [wanted]) == expected


def test_it_is_the_mean_over_the_workload_and_the_sum_over_the_nodes() -> None:
    workload = [WorkloadClass(0.25, 1, 1, 600), WorkloadClass(0.75, 1, 0, 0)]
    node = FreeNode(8000, (1000, 500))
    assert node_fragmentation(node, workload) == 0.25 * 500 + 0.75 * 1500
    assert fragmentation([node, FreeNode(8000, (500, 1000))], workload) == 2 * 1250


def test_the_workload_is_the_frequent_classes_renormalised() -> None:
    pods = [TracePod(f"a{i}", 1000, 1, 1, 500) for i in range(90)]
    pods += [TracePod(f"b{i}", 1000, 1, 1, 500, ("T4",), "T4") for i in range(6)]
    pods += [TracePod(f"c{i}", 2000, 7, 0, 0) for i in range(4)]
    workload = target_workload(pods)
    assert [c.models for c in workload] == [(), ("T4",)]
    assert [c.share for c in workload] == pytest.approx([90 / 96, 6 / 96])


def test_the_empty_openb_cluster_has_the_published_fragmentation() -> None:
    trace = openb_files.load()
    workload = target_workload(trace.pods)
    assert len(workload) == 35
    empty = [FreeNode(n.cpu_milli, (1000,) * n.gpus, n.model) for n in trace.nodes]
    assert 100 * fragmentation(empty, workload) / 6_212_000 == pytest.approx(13.94, abs=0.005)
