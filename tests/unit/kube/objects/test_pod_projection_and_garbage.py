"""Whatever users write into annotations, projecting raises nothing and scheduling goes on."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from alnair.kube.objects import wire
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.pod_groups.dialects import GangProjector, PodGroupWire
from alnair.kube.timestamps import timestamp
from alnair.model import names
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from kit import make

numbers = st.one_of(
    st.integers(-3, 3), st.integers(), st.just(2**64), st.floats(allow_nan=False), st.booleans()
)
leaves = st.one_of(
    st.none(), numbers, st.text(max_size=5), st.sampled_from(("G0", "G1", "T4", "n", "main"))
)
documents = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def nearly(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    """Texts that have the right fields with any values, or are no such document at all."""
    shaped = st.fixed_dictionaries({"v": st.just(1), "t": st.text(max_size=8), **fields})
    return st.one_of(shaped, documents).map(json.dumps) | st.text(max_size=10)


gpu = st.fixed_dictionaries(
    {
        "uuid": st.sampled_from(("G0", "G1", "")) | leaves,
        "index": st.integers(-1, 3) | leaves,
        "model": st.sampled_from(("T4", "A100")) | leaves,
        "memory_mib": st.integers(0, 40960) | numbers,
    },
    optional={"numa": leaves, "links": documents},
)
static = nearly(gpus=st.lists(gpu, max_size=3) | documents)
share = st.fixed_dictionaries(
    {
        "uuid": st.sampled_from(("G0", "G1", "G9")) | leaves,
        "index": st.integers(0, 3) | leaves,
        "memory_mib": numbers,
        "compute": numbers,
        "whole": st.booleans() | leaves,
    }
)
assignment = nearly(
    containers=st.dictionaries(st.sampled_from(("main", "x")), st.lists(share, max_size=3))
    | documents
)
planned = st.fixed_dictionaries(
    {"node": st.sampled_from(("n", "gone")) | leaves},
    optional={
        "gpus": st.dictionaries(
            st.sampled_from(("main", "x")), st.lists(st.integers(-2, 4) | numbers, max_size=3)
        )
        | documents
    },
)
plan = nearly(pods=st.dictionaries(st.sampled_from(("p0", "p1")), planned) | documents)
quantities = st.sampled_from(("1", "64", "1024", "100m", "-1", "8Ei", "1e40")) | st.text(max_size=4)


def read(kind: type[Any], document: object) -> Any:
    return msgspec.json.decode(json.dumps(document), type=kind)


@given(static, assignment, plan, quantities, st.text(max_size=6), st.booleans())
def test_garbage_stops_nobody(
    gpus: str, held: str, planned_text: str, amount: str, models: str, bound: bool
) -> None:
    node = project_node(
        read(
            wire.NodeWire,
            {
                "metadata": {"name": "n", "annotations": {names.GPU_STATIC: gpus}},
                "status": {
                    "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9", names.GPU: amount}
                },
            },
        )
    )
    gang = GangProjector("a/v1")(
        read(
            PodGroupWire,
            {
                "metadata": {
                    "name": "g",
                    "namespace": "d",
                    "annotations": {names.GANG_PLAN: planned_text},
                },
                "spec": {"minMember": 2},
            },
        )
    )
    pods = [
        PodProjector()(
            read(
                wire.PodWire,
                {
                    "metadata": {
                        "name": f"p{number}",
                        "uid": f"u{number}",
                        "namespace": "d",
                        "labels": {names.POD_GROUP_LABEL: "g"},
                        "annotations": {names.GPU_ASSIGNMENT: held, names.GPU_MODELS: models},
                    },
                    "spec": {
                        "schedulerName": names.SCHEDULER,
                        "nodeName": "n" if bound and not number else None,
                        "containers": [
                            {
                                "name": "main",
                                "resources": {"limits": {names.GPU: "1", "cpu": amount}},
                            }
                        ],
                    },
                },
            )
        )
        for number in range(2)
    ]
    engine = Engine(profiles())
    engine.learn([events.GangChanged(gang), *map(events.PodChanged, pods)], 0.0)
    engine.step([events.NodeChanged(node), events.NodeChanged(make.node("good", gpus=2))], 1.0)
    engine.step([events.NodeGone("n"), events.PodGone("u0")], 100.0)


@given(
    st.text(max_size=12)
    | st.sampled_from(("0001-01-01", "9999-12-31T23:59:59", "0001-01-01T00:00:00+23:59"))
)
def test_any_text_is_some_time_or_none(text: str) -> None:
    assert isinstance(timestamp(text), float)
