"""Snapshots of a live scheduler as scenarios: what runs goes on, what waits is decided anew."""

import gzip
from pathlib import Path

import msgspec
import pytest

from alnair.model import names
from alnair.sim.inputs import InputOptions, load
from alnair.snapshots import snapshot
from alnair.traces.files import TraceFileError
from kit import make
from kit.world import World

PROFILES = ({"schedulerName": names.SCHEDULER},)


def saved(tmp_path: Path) -> Path:
    """A cluster in which a lone pod and a gang run, and as many wait."""
    world = World(make.node("n0", gpus=4), make.node("n1", gpus=4), check=False)
    whole = make.spec(whole=2)
    world.declare(make.gang("g", 2))
    world.declare(make.gang("h", 2))
    world.create(make.pod("a", whole), *make.members("g", 2, whole))
    world.settle(0.0)
    world.create(make.pod("b", make.spec(whole=4)), *make.members("h", 2, make.spec(whole=4)))
    world.create(make.pod("other", whole, scheduler="default-scheduler"))
    world.settle(0.0)
    taken = snapshot.take(world.engine.view, PROFILES, 0, world.now + 100)
    path = tmp_path / "cluster.snapshot"
    path.write_bytes(snapshot.encode(taken))
    return path


def test_running_pods_go_on_and_waiting_ones_come_at_once(tmp_path: Path) -> None:
    found = load([saved(tmp_path)])
    scenario = found.scenario
    assert found.format == "snapshot"
    assert [node.name for node in scenario.nodes] == ["n0", "n1"]
    running = {job.name: job for job in scenario.running}
    assert sorted(running) == ["default/PodGroup/g", "default/a"]
    assert all(pod.node and pod.bound_at <= -100 for job in running.values() for pod in job.pods)
    assert [job.name for job in scenario.jobs] == ["default/b", "default/PodGroup/h"]
    assert all(job.submitted == 0.0 for job in scenario.jobs)
    assert not any(job.pods[0].name == "other" for job in scenario.jobs)


def test_a_snapshot_on_other_nodes_places_all_anew(tmp_path: Path) -> None:
    scenario = load([saved(tmp_path)], InputOptions(nodes="4x8xA100")).scenario
    assert not scenario.running
    assert len(scenario.jobs) == 4
    assert not any(pod.node or pod.assignment for job in scenario.jobs for pod in job.pods)


def test_a_snapshot_may_be_unpacked(tmp_path: Path) -> None:
    path = saved(tmp_path)
    packed = load([path]).scenario
    path.write_bytes(gzip.decompress(path.read_bytes()))
    assert load([path]).scenario == packed


def test_a_damaged_snapshot_is_told(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = msgspec.json.decode(gzip.decompress(path.read_bytes()))
    for change, said in (
        ({"version": 99}, "is a snapshot of version 99"),
        ({"nodes": 5}, "is a damaged snapshot"),
        ({"objects": [{"kind": "No", "namespace": "", "name": "", "value": 1}]}, "is a damaged"),
    ):
        path.write_bytes(msgspec.json.encode({**whole, **change}))
        with pytest.raises(TraceFileError, match=said):
            load([path])
