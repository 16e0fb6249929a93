"""The built-in profiles, spelled out, and the rooms of their plugins."""

import re
from typing import Any

import pytest

from alnair.model import names
from alnair.scheduler.profiles import PROFILES, profiles, registry

FIRST: list[tuple[str, int | None, dict[str, Any]]] = [
    ("PrioritySort", None, {}),
    ("SchedulingGates", None, {}),
    ("NodeUnschedulable", None, {}),
    ("NodeName", None, {}),
    ("TaintToleration", 3, {}),
    ("NodeAffinity", 2, {}),
    ("NodePorts", None, {}),
]
LAST: list[tuple[str, int | None, dict[str, Any]]] = [
    ("NodeResourceTopologyMatch", 1, {}),
    ("VolumeRestrictions", None, {}),
    ("NodeVolumeLimits", None, {}),
    ("VolumeBinding", None, {}),
    ("VolumeZone", None, {}),
    ("PodTopologySpread", 2, {"defaultingType": "List"}),
    ("InterPodAffinity", 2, {}),
    ("DefaultPreemption", None, {}),
]
LEAST, MOST = {"type": "LeastAllocated"}, {"type": "MostAllocated"}
LEAST_GPUS = {
    **LEAST,
    "tieBreakers": ["NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"],
}
#: Where nodes and GPUs are filled one after the other, until somebody knows better.
IN_ORDER: list[tuple[str, int | None, dict[str, Any]]] = [
    *FIRST,
    ("NodeResourcesFit", 1, {"scoringStrategy": LEAST, "gpuNodesInOrder": True}),
    ("ImageLocality", 1, {"gpuNodesInOrder": True}),
    ("GpuShare", None, {"choice": "tightest"}),
    ("GpuAllocation", 1, {**MOST, "tieBreakers": ["NodeResourceTopologyMatch"]}),
    ("GpuTopology", 2, {"nvlinkOnly": True}),
    ("GpuModels", 4, {}),
]
#: Profile → plugins in their order, the weights of those that score, arguments.
BUILT_IN: dict[str, list[tuple[str, int | None, dict[str, Any]]]] = {
    "alnair-scheduler": [
        *IN_ORDER,
        ("OpportunityCost", 1, {"untilLearned": ["GpuAllocation"], "targetUtilization": 100}),
        *LAST,
    ],
    "alnair-cost-saving": [
        *FIRST,
        ("NodeResourcesFit", 1, {"scoringStrategy": MOST}),
        ("GpuShare", None, {"choice": "tightest"}),
        (
            "GpuAllocation",
            1,
            {
                **MOST,
                "smallestFirst": True,
                "tieBreakers": ["NodeResourcesFit", "GpuTopology", "NodeResourceTopologyMatch"],
            },
        ),
        ("GpuTopology", 2, {}),
        ("GpuModels", 4, {}),
        *LAST,
    ],
    "alnair-high-performance": [
        *FIRST,
        ("NodeResourcesFit", 1, {"scoringStrategy": LEAST}),
        ("NodeResourcesBalancedAllocation", 1, {}),
        ("ImageLocality", 1, {}),
        ("GpuShare", None, {"choice": "emptiest"}),
        ("GpuAllocation", 1, LEAST_GPUS),
        ("GpuTopology", 2, {}),
        ("GpuModels", 4, {}),
        *LAST,
    ],
    "alnair-low-fragmentation": [
        *IN_ORDER,
        ("OpportunityCost", 1, {"untilLearned": ["GpuAllocation"]}),
        *LAST,
    ],
    "alnair-in-order": [
        *IN_ORDER,
        *LAST,
    ],
    "utilsched": [
        *FIRST,
        ("NodeResourcesFit", 1, {"scoringStrategy": LEAST}),
        ("NodeResourcesBalancedAllocation", 1, {}),
        ("ImageLocality", 1, {}),
        ("GpuShare", None, {"choice": "tightest"}),
        ("GpuAllocation", 1, LEAST_GPUS),
        ("GpuTopology", 2, {}),
        ("GpuModels", 4, {}),
        ("UtilSched", 5, {}),
        ("Interference", 2, {}),
        *LAST,
    ],
}


def test_the_built_in_profiles_are_these() -> None:
    found = profiles()
    assert [p.scheduler for p in found] == list(BUILT_IN)
    for profile in found:
        arguments = [dict(use.arguments) for use in PROFILES[profile.scheduler]]
        weights = [
            profile.weights[p.name] if p in profile.scores else None for p in profile.plugins
        ]
        spelled_out = zip([p.name for p in profile.plugins], weights, arguments, strict=True)
        assert list(spelled_out) == BUILT_IN[profile.scheduler]


def test_the_names_of_profiles_are_those_that_are_announced() -> None:
    assert set(PROFILES) == names.SCHEDULERS


def test_a_plugin_that_no_profile_lists_is_in_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unlisted:
        name = "Unlisted"

    more = {**registry(), "Unlisted": Unlisted}
    monkeypatch.setattr("alnair.scheduler.profiles.registry", lambda: more)
    assert all("Unlisted" not in [p.name for p in profile.plugins] for profile in profiles())


@pytest.mark.parametrize("name", registry())
def test_a_plugin_is_in_the_room_of_its_name(name: str) -> None:
    room = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    module: str = registry()[name].__module__
    start = f"alnair.scheduler.plugins.{room}"
    assert module in (start, f"{start}.plugin")
