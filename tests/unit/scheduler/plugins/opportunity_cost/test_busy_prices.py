"""GPUs that are measured to be busy cost slices more, and are refused only if that is asked for."""

import msgspec
import numpy as np
import pytest

from alnair.model import names
from alnair.model.nodes import GpuLoad, Node
from alnair.model.workload import PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.arguments import ArgumentError, made
from alnair.scheduler.plugins.opportunity_cost.busy_prices import BusyPrices
from alnair.scheduler.plugins.opportunity_cost.gpu_prices import GRAIN
from alnair.scheduler.plugins.opportunity_cost.plugin import OpportunityCost
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.cluster import Cluster
from kit import make
from kit.stream import Stream, share


def measured(name: str, *utils: float, gpus: int = 1) -> Node:
    """A node whose first GPUs are busy for so many percent of their time."""
    node = make.node(name, cpu=64000, gpus=gpus, gpu_memory=10000)
    loads = tuple(
        GpuLoad(gpu.uuid, util, 1000, 1.0)
        for gpu, util in zip(node.gpus, utils, strict=bool(len(utils) == gpus))
    )
    return msgspec.structs.replace(node, loads=loads, agent_lease=f"agent-{name}")


def expecting(util: float, percent: int = 30) -> PodSpec:
    return msgspec.structs.replace(share(percent), expected_util=util)


def stream_of(*nodes: Node, **arguments: float) -> Stream:
    """Pods one after another, by OpportunityCost with these arguments."""
    stream = Stream(*nodes)
    spelt = {"target": "targetUtilization", "limit": "maxUtilization"}
    ours = made(OpportunityCost, {spelt[name]: value for name, value in arguments.items()})
    others = [plugin for plugin in stream.profile.plugins if plugin.name != ours.name]
    stream.profile = type(stream.profile)("test", [*others, ours])
    stream.engine = Engine([stream.profile], order=[n.name for n in nodes], patience=None)
    stream.engine.learn([events.NodeChanged(n) for n in nodes], 0.0)
    return stream


def shared(name: str) -> PodSpec:
    return share(30, selector={"kubernetes.io/hostname": name})


def prices(util: float, own: float, target: float) -> float:
    cluster: Cluster = Stream(measured("a", util)).engine.view.cluster
    found = BusyPrices(expecting(own), cluster, target, 0.0).of(slice(0, 1))
    return float(found[0, 0]) * GRAIN / 2


@pytest.mark.parametrize(
    ("util", "own", "price"),
    [(0, 0, 0), (69, 0, 0), (70, 0, 0), (85, 0, 0.5), (100, 0, 15 / 16), (60, 25, 0.5)],
)
def test_a_gpu_costs_more_by_what_goes_beyond_the_target(
    util: float, own: float, price: float
) -> None:
    assert prices(util, own, 70.0) == price


@pytest.mark.parametrize(
    ("profile", "taken"), [(names.SCHEDULER, "busy"), (names.LOW_FRAGMENTATION, "calm")]
)
def test_by_default_a_slice_joins_a_busy_tenant_whose_share_is_enforced(
    profile: str, taken: str
) -> None:
    stream = Stream(*(nodes := (measured("busy", 95), measured("calm", 0))))
    (built_in,) = (one for one in profiles() if one.scheduler == profile)
    stream.profile = type(built_in)("test", built_in.plugins, built_in.weights)
    stream.engine = Engine([stream.profile], order=[n.name for n in nodes], patience=None)
    stream.engine.learn([events.NodeChanged(n) for n in nodes], 0.0)
    assert stream.place(shared("busy"))[0] == "busy"
    for _ in range(16):  # from then on it goes by what it has learned
        where, _ = stream.place(share(3))
    assert where == taken


def test_a_pod_that_is_alone_there_pays_nothing() -> None:
    assert prices(0, 95, 70.0) == 0
    assert prices(100, 95, 100.0) == 0, "no target"


def test_a_slice_goes_to_the_calmer_gpu_although_the_other_is_first() -> None:
    nodes = measured("busy", 95), measured("calm", 10)
    for target, taken in ((70, "calm"), (100, "busy")):
        stream = stream_of(*nodes, target=target)
        assert stream.place(shared("busy"))[0] == "busy"
        assert stream.place(shared("calm"))[0] == "calm"
        assert stream.place(share(30))[0] == taken


def test_of_the_gpus_of_a_node_the_calmer_is_taken() -> None:
    stream = stream_of(measured("a", 95, 10, gpus=2))
    assert stream.place(share(30)) == ("a", [1])


def test_a_price_refuses_nobody_and_a_limit_does() -> None:
    for limit, taken in ((0, "busy"), (80, "")):
        stream = stream_of(measured("busy", 95), limit=limit)
        assert stream.place(share(30))[0] == "busy", "it is alone there"
        assert stream.place(share(30))[0] == taken


def test_where_some_gpus_of_a_node_are_beyond_the_limit_another_is_taken() -> None:
    stream = stream_of(measured("a", 95, 75, gpus=2), target=100, limit=80)
    assert stream.place(share(30)) == ("a", [0])
    assert stream.place(share(30)) == ("a", [1]), "the first has a tenant, and is too busy"


def test_what_is_not_measured_costs_nothing() -> None:
    stream = stream_of(measured("a", 95), make.node("b", cpu=64000, gpus=1, gpu_memory=10000))
    assert stream.place(share(30))[0] == "b"
    cluster = stream.engine.view.cluster
    assert np.array_equal(
        BusyPrices(share(30), cluster, 70.0, 0.0).of(slice(1, 2)), np.zeros((1, 1))
    )
    unknown = Stream(make.node("b", gpus=1)).engine.view.cluster
    assert not BusyPrices(share(30), unknown, 70.0, 80.0).count


@pytest.mark.parametrize("field", ["targetUtilization", "maxUtilization"])
@pytest.mark.parametrize("value", [-1, 101, "70"])
def test_percentages_out_of_range_are_refused(field: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=rf"OpportunityCost.*\$\.{field}"):
        made(OpportunityCost, {field: value})


def test_it_asks_for_measurements_only_where_they_count() -> None:
    assert made(OpportunityCost, {}).reads_loads
    assert not made(OpportunityCost, {"targetUtilization": 100}).reads_loads
