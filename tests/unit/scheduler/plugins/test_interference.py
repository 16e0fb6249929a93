"""Interference by measured pairs, and what it goes by where nothing was measured."""

import msgspec
import pytest

from alnair.model import names
from alnair.model.nodes import Node
from alnair.model.pair_rates import PairRates
from alnair.model.workload import Pod
from alnair.scheduler.framework.arguments import ArgumentError, made
from alnair.scheduler.plugins.interference import Interference, InterferenceArguments
from kit import make
from kit.world import World

TABLE = PairRates(("train", "serve"), ((0.5, 0.9), (0.7, 0.95)))
PAIRS = InterferenceArguments(pairs={"A100": TABLE})


def tenant(name: str, node: Node, index: int, kind: str) -> Pod:
    gpu = node.gpus[index]
    spec = msgspec.structs.replace(make.spec(slice_mib=1024), workload=kind)
    held = (("main", (make.share(gpu, 1024),)),)
    return make.pod(name, spec, node=node.name, bound_at=1.0, assignment=held)


def asking(kind: str, **more: int) -> Pod:
    spec = msgspec.structs.replace(make.spec(slice_mib=1024, **more), workload=kind)
    return make.pod("new", spec, scheduler=names.UTILSCHED)


def scores(world: World, pod: Pod, plugin: Interference) -> list[float]:
    found = plugin.gpus(pod.spec, world.engine.view.cluster)
    assert found is not None
    return [round(float(score), 1) for score in found(slice(0, 1))[:, 0]]


def test_a_measured_pair_counts_as_measured_and_all_else_as_predicted() -> None:
    node = make.node("n", gpus=5)
    there = World(node)
    there.create(
        tenant("t", node, 0, "train"),
        tenant("s", node, 1, "serve"),
        tenant("x", node, 2, "unheard"),
        tenant("two-1", node, 3, "train"),
        tenant("two-2", node, 3, "serve"),
    )
    there.step()
    # By the mean of both speeds; beside two, or somebody unknown, only the GPU's time is known.
    assert scores(there, asking("train"), Interference(PAIRS)) == [50, 80, 100, 100, 100]
    assert scores(there, asking("serve"), Interference(PAIRS)) == [80, 95, 100, 100, 100]
    assert scores(there, asking(""), Interference(PAIRS)) == [100] * 5
    assert scores(there, asking("train"), Interference()) == [100] * 5


def test_a_table_of_another_gpu_changes_nothing() -> None:
    node = make.node("n", gpus=1, model="H100")
    there = World(node)
    there.create(tenant("t", node, 0, "train"))
    there.step()
    assert scores(there, asking("train"), Interference(PAIRS)) == [100]


def test_limited_slices_go_by_what_was_measured_of_limited_ones() -> None:
    node = make.node("n", gpus=1)
    there = World(node)
    there.create(tenant("t", node, 0, "train"))
    there.step()
    limited = PairRates(("train",), ((0.99,),))
    both = Interference(InterferenceArguments(pairs={"A100": TABLE, "A100/limited": limited}))
    assert scores(there, asking("train", compute=50), both) == [99]
    assert scores(there, asking("train"), both) == [50]


def test_kinds_and_models_that_come_later_are_looked_up_anew() -> None:
    node = make.node("n", gpus=1)
    there = World(node)
    there.step()
    found = Interference(PAIRS).gpus(asking("train").spec, there.engine.view.cluster)
    assert found is not None
    assert found(slice(0, 1))[0, 0] == 100
    there.create(tenant("t", node, 0, "train"))
    there.step()
    assert found(slice(0, 1))[0, 0] == 50
    there.delete("t")
    there.step()
    assert found(slice(0, 1))[0, 0] == 100
    there.create(tenant("s", node, 0, "serve"))
    there.step()
    assert round(float(found(slice(0, 1))[0, 0])) == 80, "who left is forgotten"
    there.put(make.node("n", gpus=1, labels={"new": "label"}))
    there.put(make.node("n", gpus=2))
    there.step()
    assert [round(float(score)) for score in found(slice(0, 1))[:, 0]] == [80, 100]


@pytest.mark.parametrize(
    ("kind", "other", "said"),
    [
        ("train", "serve", "beside serve it was measured (A100) to run at 0.90 of its speed"),
        ("train", "unheard", "train was not measured beside unheard"),
        ("trian", "serve", "beside serve; trian was never measured: did you mean train?"),
        ("", "serve", "the pod does not say what it computes (ai.centaurus.io/workload-kind)"),
        ("train", "", "its neighbour does not say what it computes"),
    ],
)
def test_the_figure_that_counts_is_told(kind: str, other: str, said: str) -> None:
    node = make.node("n", gpus=2)
    there = World(node)
    there.create(tenant("t", node, 0, other))
    there.step()
    cluster = there.engine.view.cluster
    assert said in Interference(PAIRS).why_gpu(asking(kind).spec, cluster, 0, 0)
    assert Interference(PAIRS).why_gpu(asking(kind).spec, cluster, 0, 1) == "", "nobody is there"


def test_why_nothing_was_measured_is_told() -> None:
    node = make.node("n", gpus=1, model="H100")
    there = World(node)
    there.create(tenant("t", node, 0, "train"))
    there.step()
    cluster, spec = there.engine.view.cluster, asking("train").spec
    assert "no pairs were measured on H100, but on A100" in Interference(PAIRS).why_gpu(
        spec, cluster, 0, 0
    )
    assert "no measured pairs are known here" in Interference().why_gpu(spec, cluster, 0, 0)
    there.create(tenant("u", node, 0, "train"))
    there.step()
    assert "it has 2 neighbours" in Interference(PAIRS).why_gpu(spec, cluster, 0, 0)


def test_bad_tables_are_refused_with_their_place() -> None:
    wrong = {"pairs": {"A100": {"kinds": ["a"], "rates": [[2.0]]}}}
    with pytest.raises(ArgumentError, match=r"pairs\.A100: rates: 'a' beside 'a' is 2"):
        made(Interference, wrong)
