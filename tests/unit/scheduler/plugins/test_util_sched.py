"""UtilSched by its formula, and where what is measured changes a decision."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.configuration.profile_assembly import assemble
from alnair.configuration.scheduler_file import Configuration, PluginConfig, ProfileConfiguration
from alnair.model import names
from alnair.model.nodes import GpuLoad, Node
from alnair.model.slowdown_prediction import Contention
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.framework.arguments import ArgumentError, made
from alnair.scheduler.plugins.interference import Interference
from alnair.scheduler.plugins.util_sched import UtilSched, UtilSchedArguments, Weights
from kit import make
from kit.world import World

NOW = 1000.0


def loaded(name: str, *loads: tuple[float, int] | None, model: str = "A100") -> Node:
    """A node of a GPU per load: percent of time and MiB in use, None = not measured."""
    node = make.node(name, cpu=64000, gpus=len(loads), model=model)
    measured = tuple(
        GpuLoad(gpu.uuid, load[0], load[1], NOW)
        for gpu, load in zip(node.gpus, loads, strict=True)
        if load
    )
    return msgspec.structs.replace(node, loads=measured, agent_lease="alnair-agent-" + name)


def slice_pod(name: str, util: float = 0.0, memory: int = 0, **more: object) -> Pod:
    asked = msgspec.structs.replace(
        make.spec(slice_mib=4096), expected_util=util, expected_memory_mib=memory
    )
    return msgspec.structs.replace(make.pod(name, asked, scheduler=names.UTILSCHED), **more)


def gpu_of(world: World, name: str) -> tuple[str, int]:
    pod = world.pod(name)
    (_, (share,)) = pod.assignment[0]
    return pod.node, share.index


def world(*nodes: Node) -> World:
    made_world = World(*nodes)
    made_world.now = NOW
    return made_world


def tenant(name: str, node: Node, index: int) -> Pod:
    """A pod of 1 GiB that is on a GPU already."""
    gpu = node.gpus[index]
    return make.pod(
        name,
        make.spec(slice_mib=1024),
        node=node.name,
        bound_at=1.0,
        scheduler=names.UTILSCHED,
        assignment=(("main", (make.share(gpu, 1024),)),),
    )


def test_measurements_change_the_decision_that_bookings_alone_would_make() -> None:
    """Both GPUs have one tenant of the same size, so by bookings they are alike."""
    busy, calm = loaded("busy", (65.0, 9000)), loaded("calm", (10.0, 1500))
    for nodes in ((busy, calm), (calm, busy)):
        there = world(*nodes)
        there.create(tenant("a", busy, 0), tenant("b", calm, 0))
        there.create(slice_pod("new"))
        there.settle()
        assert gpu_of(there, "new") == ("calm", 0), "the idlest for a pod of unknown demand"
    there = world(busy, calm)
    there.create(tenant("a", busy, 0), tenant("b", calm, 0))
    there.create(slice_pod("known", util=50.0))
    there.settle()
    assert gpu_of(there, "known") == ("calm", 0), "busy would be at 115 %"


def test_a_pod_of_known_demand_fills_up_a_gpu_and_leaves_the_idle_one_for_larger_ones() -> None:
    half, idle = loaded("half", (50.0, 20000)), loaded("idle", (0.0, 0))
    there = world(half, idle)
    there.create(tenant("a", half, 0))
    there.create(slice_pod("small", util=18.0, memory=20000))
    there.settle()
    assert gpu_of(there, "small") == ("half", 0)


def test_a_pod_joins_a_gpu_beyond_the_target_only_where_no_other_will_do() -> None:
    # By its bookings and its memory, the GPU that the pod would make too busy is the better one.
    over, under = loaded("over", (60.0, 20000)), loaded("under", (5.0, 30000))
    there = world(over, under)
    there.create(tenant("a", over, 0), tenant("b", under, 0))
    there.create(slice_pod("new", util=15.0, memory=20000))
    there.settle(1.0)
    assert gpu_of(there, "new") == ("under", 0)
    alone = world(over)
    alone.create(tenant("a", over, 0), slice_pod("new", util=15.0))
    alone.settle(1.0)
    assert gpu_of(alone, "new") == ("over", 0), "it waits for nothing"


def test_on_a_node_too_the_gpu_beyond_the_target_comes_last() -> None:
    node = loaded("n", (60.0, 100), (50.0, 38000))
    there = world(node)
    there.create(tenant("a", node, 0), tenant("b", node, 1), slice_pod("new", util=15.0))
    there.settle(1.0)
    assert gpu_of(there, "new") == ("n", 1)


def limited(node: Node, **arguments: float) -> World:
    """A world whose profile `utilsched` has these arguments of UtilSched."""
    profile = ProfileConfiguration(
        scheduler_name=names.UTILSCHED, plugin_config=(PluginConfig("UtilSched", arguments),)
    )
    assembly = assemble(Configuration(profiles=(profile,)), "test")
    there = World(node, profiles=lambda: tuple(assembly.profiles()))
    there.now = NOW
    return there


def test_no_pod_joins_a_gpu_beyond_a_limit_and_the_reason_says_so() -> None:
    node = loaded("n", (60.0, 100))
    there = limited(node, maxUtilization=70)
    there.create(tenant("a", node, 0), slice_pod("new", util=15.0))
    there.settle(1.0)
    assert not there.pod("new").node
    assert "no GPU to share below 70 % measured and expected" in there.reports[-1].message
    there.put(loaded("n", (50.0, 100)))
    there.settle(1.0)
    assert there.pod("new").node == "n", "the load fell, and it is told at once"


def test_a_pod_of_large_demand_may_have_a_gpu_of_its_own() -> None:
    there = world(loaded("n", (5.0, 100)))
    there.create(slice_pod("large", util=95.0))
    there.settle(1.0)
    assert there.pod("large").node == "n"


def test_where_nothing_is_measured_a_limit_refuses_nobody() -> None:
    node = loaded("n", None)
    there = limited(node, maxUtilization=70)
    there.create(tenant("a", node, 0), slice_pod("new", util=90.0))
    there.settle(1.0)
    assert there.pod("new").node == "n"


def test_a_dead_agents_measurement_does_not_keep_pods_off() -> None:
    node = loaded("n", (90.0, 100))
    there = limited(node, maxUtilization=70)
    there.create(tenant("a", node, 0), slice_pod("new"))
    there.settle(10.0)
    assert not there.pod("new").node
    there.settle(120.0)
    assert there.pod("new").node == "n"


def test_pods_that_came_since_the_measurement_count() -> None:
    node = loaded("n", (0.0, 0), (0.0, 0))
    there = limited(node, maxUtilization=70)
    there.create(*(slice_pod(f"p{i}", util=40.0) for i in range(3)))
    there.settle(1.0)
    assert sorted(gpu_of(there, f"p{i}")[1] for i in range(3) if there.pod(f"p{i}").node) == [0, 1]


@given(
    util=st.floats(0, 100),
    used=st.integers(0, 40960),
    expected=st.sampled_from([0.0, 10.0, 60.0, 99.0]),
    memory=st.sampled_from([0, 2048, 30000]),
    weight=st.sampled_from([100.0, 40.0]),
    target=st.sampled_from([50.0, 70.0, 100.0]),
    limit=st.sampled_from([0.0, 70.0, 100.0]),
)
def test_the_score_of_a_gpu_is_the_documented_formula(
    util: float,
    used: int,
    expected: float,
    memory: int,
    weight: float,
    target: float,
    limit: float,
) -> None:
    there = world(loaded("n", (util, used), None))
    there.step()
    arguments = UtilSchedArguments(
        target_utilization=target,
        max_utilization=limit,
        weights=Weights(1.0, 2.0, 3.0),
        model_weights={"A100": weight},
    )
    spec: PodSpec = slice_pod("p", expected, memory).spec
    scores = UtilSched(arguments).gpus(spec, there.engine.view.cluster)
    assert scores is not None
    got = scores(slice(0, 1))[:, 0]
    basic = weight
    assert got[1] == pytest.approx(basic), "nothing but the model is known of the second GPU"
    percent = min(100.0, used * 100 / 40960)
    idle = 100 - (util + percent) / 2
    terms: Mapping[float, float] = {1.0: basic, 2.0: idle}
    if expected:
        most = min(target, limit or 100.0)
        p = util + expected
        time = p * 100 / most if p <= most else max(0, 100 - p) * 100 / max(100 - most, 1e-9)
        space = min(100.0, percent + (memory or 4096) * 100 / 40960)
        terms = {**terms, 3.0: (time + space) / 2}
    expected_score = sum(w * t for w, t in terms.items()) / sum(terms)
    assert got[0] == pytest.approx(expected_score, rel=1e-9, abs=1e-6)


def test_arguments_out_of_range_are_refused_with_the_field() -> None:
    for raw, said in (
        ({"maxUtilization": 170}, "maxUtilization: 170 is out of range"),
        ({"targetUtilization": 0}, "targetUtilization: 0 is out of range, write a number from 1"),
        ({"weights": {"basic": 0, "utilization": 0, "allocated": 0}}, "all are 0"),
        ({"weights": {"speed": 1}}, "speed"),
        ({"modelWeights": {"A100": -1}}, "modelWeights.A100: -1 is out of range"),
    ):
        with pytest.raises(ArgumentError, match=said):
            made(UtilSched, raw)


def test_interference_prefers_gpus_whose_tenants_leave_time() -> None:
    there = world(loaded("n", (80.0, 0), (20.0, 0), None))
    there.step()
    scores = Interference().gpus(slice_pod("p", util=70.0).spec, there.engine.view.cluster)
    assert scores is not None
    assert [round(s, 1) for s in scores(slice(0, 1))[:, 0]] == [66.7, 100.0, 100.0]


def test_what_is_learned_takes_the_place_of_the_plain_model() -> None:
    class Learned(Contention):
        def slowdown(self, own: float, others: object) -> object:  # type: ignore[override]
            return super().slowdown(own, others) * 2.0  # type: ignore[arg-type]

    there = world(loaded("n", (0.0, 0)))
    there.step()
    scores = Interference(model=Learned()).gpus(slice_pod("p").spec, there.engine.view.cluster)
    assert scores is not None
    assert scores(slice(0, 1))[0, 0] == 50.0


def test_an_ignored_expectation_is_told_when_the_pod_is_placed() -> None:
    there = world(loaded("n", (0.0, 0)))
    there.create(slice_pod("p", ignored="annotation ai.centaurus.io/expected is ignored: why"))
    there.settle()
    assert [r.kind for r in there.reports] == ["Scheduled", "AnnotationIgnored"]
