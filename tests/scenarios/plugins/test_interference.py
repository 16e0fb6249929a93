"""Measured pairs through the whole engine: the pod goes beside the kinder neighbour."""

from pathlib import Path

import msgspec
import pytest

from alnair.configuration.profile_assembly import load_profiles
from alnair.model import names
from alnair.model.nodes import GpuLoad, Node
from alnair.model.pair_rates import PairRates
from alnair.model.workload import Pod
from alnair.scheduler.advice.diagnose import diagnose, find
from alnair.traces.pair_tables import save
from kit import make
from kit.world import World

NOW = 1000.0
#: Beside `bad` a trainer has 0.3 of its speed, beside `kind` 0.95.
TABLE = PairRates(("train", "bad", "kind"), ((0.5, 0.3, 0.95), (0.4, 0, 0), (0.9, 0, 0)))


def alike(name: str) -> Node:
    """A node with one GPU that is busy for a third of its time."""
    node = make.node(name, cpu=64000, gpus=1)
    load = GpuLoad(node.gpus[0].uuid, 33.0, 1024, NOW)
    return msgspec.structs.replace(node, loads=(load,), agent_lease="alnair-agent-" + name)


def asking(name: str, kind: str) -> Pod:
    spec = msgspec.structs.replace(
        make.spec(slice_mib=1024), workload=kind, expected_util=30.0, expected_memory_mib=1024
    )
    return make.pod(name, spec, scheduler=names.UTILSCHED)


def world(folder: Path, *, pairs: bool, kinds: tuple[str, str]) -> World:
    """Two nodes, a and b, whose tenants are of these kinds."""
    file = folder / "pairs.json"
    save(file, {"A100": TABLE})
    nodes = [alike(name) for name in "ab"]
    found = World(*nodes, profiles=lambda: load_profiles(None, file if pairs else None)[1])
    found.now = NOW
    for node, kind in zip(nodes, kinds, strict=True):
        spec = msgspec.structs.replace(make.spec(slice_mib=1024), workload=kind)
        held = (("main", (make.share(node.gpus[0], 1024),)),)
        found.create(
            make.pod(
                f"on-{node.name}",
                spec,
                node=node.name,
                bound_at=1.0,
                scheduler=names.UTILSCHED,
                assignment=held,
            )
        )
    return found


def beside(there: World) -> str:
    """What is said of the new pod's neighbour."""
    record = find(there.engine.view, "default", "new")
    assert record is not None
    told = diagnose(there.engine.view, record, there.now).placement
    assert told is not None
    return told.gpus[0].beside


@pytest.mark.parametrize(("kinds", "wanted"), [(("bad", "kind"), "b"), (("kind", "bad"), "a")])
def test_a_pod_goes_beside_the_neighbour_that_was_measured_to_be_kinder(
    tmp_path: Path, kinds: tuple[str, str], wanted: str
) -> None:
    there = world(tmp_path, pairs=True, kinds=kinds)
    there.create(asking("new", "train"))
    there.settle()
    assert there.pod("new").node == wanted
    assert beside(there).startswith("beside kind it was measured (A100) to run at 0.95")


def test_without_pairs_kinds_change_nothing_and_the_figure_told_is_the_prediction(
    tmp_path: Path,
) -> None:
    went = set()
    for kinds in (("bad", "kind"), ("kind", "bad")):
        there = world(tmp_path, pairs=False, kinds=kinds)
        there.create(asking("new", "train"))
        there.settle()
        went.add(there.pod("new").node)
        assert "no measured pairs are known here" in beside(there)
    assert len(went) == 1, "the order of ties decides"


def test_a_neighbour_counts_as_what_its_agent_has_seen_and_stays_booked(tmp_path: Path) -> None:
    there = world(tmp_path, pairs=True, kinds=("", ""))
    there.settle()
    there.create(asking("new", "train"))
    there.settle()
    assert "its neighbour does not say what it computes" in beside(there)
    neighbour = f"on-{there.pod('new').node}"
    spec = msgspec.structs.replace(there.pod(neighbour).spec, workload="kind")
    there.update(neighbour, spec=spec)
    there.settle()
    assert there.pod(neighbour).node
    assert not there.evicted()
    assert beside(there).startswith("beside kind it was measured")
