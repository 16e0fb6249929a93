"""Quotas that were there before the API server knew the rules, and what it cannot know."""

from typing import Any

from alnair.doctor.cluster.elastic_quotas import elastic_quotas
from alnair.doctor.cluster.look import ClusterLook
from alnair.kube.resources import ELASTIC_QUOTAS, Manifest, Resource


class Cluster(ClusterLook):
    """A cluster with these quotas, and a node with two GPUs."""

    def __init__(self, *specs: dict[str, Any]) -> None:
        self._quotas = [
            {"metadata": {"name": f"q{number}", "namespace": f"n{number}"}, "spec": spec}
            for number, spec in enumerate(specs)
        ]

    async def all(self, kind: Resource[Manifest], namespace: str | None = None) -> list[Manifest]:
        if kind is ELASTIC_QUOTAS:
            return self._quotas
        offered = {"nvidia.com/gpu": "2", "cpu": "8", "memory": "8Gi"}
        return [{"metadata": {"name": "n"}, "status": {"allocatable": offered}}]


async def said(*specs: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = await elastic_quotas(Cluster(*specs))
    return [(one.level.value, one.where, one.what) for one in found]


async def test_one_that_cannot_be_read_counts_for_nothing() -> None:
    ((level, where, what),) = await said({"max": {"memory": "8 Gi"}})
    assert (level, where) == ("error", "elasticquota/q0 in n0")
    assert what.startswith("it counts for nothing: spec: '8 Gi' is not a quantity")


async def test_bounds_that_cross_are_told_with_the_one_that_holds() -> None:
    ((level, _, what),) = await said({"min": {"cpu": 3}, "max": {"cpu": "2500m"}})
    assert (level, what) == ("warning", "spec.min of cpu is more than spec.max, and spec.max holds")


async def test_a_resource_of_no_node_and_guarantees_beyond_all_nodes_are_told() -> None:
    share = {"min": {"nvidia.com/gpu": 1}, "max": {"pods": 9}}
    assert [level for level, _, _ in await said(share, share)] == ["ok"]
    found = await said(share, share, {"min": {"nvidia.com/gpu": 1, "amd.com/gpus": 1}})
    unknown, sums = (what for _, _, what in found)
    assert unknown == "no node offers amd.com/gpus: is nvidia.com/gpu meant?"
    assert sums.startswith("all quotas together guarantee 3 of nvidia.com/gpu, and nodes have 2")


async def test_a_cluster_without_quotas_is_well() -> None:
    assert await said() == [("ok", "", "there are none")]
