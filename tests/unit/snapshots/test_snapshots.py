"""Snapshots: what is saved decides the same again, and what is no snapshot is said to be none."""

import gzip
import os
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer

from alnair.configuration.profile_assembly import Assembly
from alnair.configuration.scheduler_file import Configuration
from alnair.kube.objects.watched_kinds import object_types
from alnair.model import names
from alnair.model.action import Bind
from alnair.processes.scheduler.endpoints import application
from alnair.processes.scheduler.loop import Decisions
from alnair.scheduler.engine import events
from alnair.snapshots.replay import replay
from alnair.snapshots.snapshot import Snapshot, SnapshotError, encode, take
from alnair.snapshots.snapshot_profiles import decode, load
from kit import make
from kit.world import World

PROFILES = Assembly(Configuration()).explicit()


def snapshot_of(world: World) -> Snapshot:
    """The file of a world, read again."""
    return decode(encode(take(world.engine.view, PROFILES, world.seed, world.now)))


def random_world(seed: int) -> World:
    """A cluster that is partly full: lone pods and gangs, with and without GPUs."""
    chance = random.Random(seed)
    world = World(
        *(
            make.node(
                f"n{i}",
                cpu=chance.choice((4000, 16000)),
                gpus=chance.choice((0, 2, 8)),
                labels={"zone": chance.choice("ab")},
            )
            for i in range(12)
        ),
        seed=seed,
        check=False,
    )
    add_pods(world, chance, "old", 25)
    world.settle(0.0)
    for pod in [p for p in world.pods.values() if p.node][::3]:
        world.delete(pod.name)
    world.settle(0.0)
    return world


def add_pods(world: World, chance: random.Random, prefix: str, count: int) -> None:
    profiles = (names.SCHEDULER, names.COST_SAVING, names.HIGH_PERFORMANCE)
    for i in range(count):
        kind = chance.randrange(4)
        asked = make.spec(
            cpu=chance.randrange(100, 3000),
            whole=chance.randrange(1, 5) if kind == 0 else 0,
            slice_mib=chance.randrange(1, 8) * 4096 if kind == 1 else 0,
            selector={"zone": "a"} if kind == 2 else None,
        )
        name = f"{prefix}-{i}"
        if kind == 3:
            world.declare(make.gang(name, 3))
            world.create(*make.members(name, 3, asked, created=float(i)))
        else:
            world.create(make.pod(name, asked, scheduler=chance.choice(profiles), created=float(i)))


@pytest.mark.parametrize("seed", range(8))
def test_a_replay_places_pods_where_the_live_engine_does(seed: int) -> None:
    world = random_world(seed)
    add_pods(world, random.Random(seed + 100), "new", 15)
    world.step(limit=0)  # they are known, and nothing is decided
    saved = snapshot_of(world)
    world.log.clear()
    world.settle(0.0)
    live = {(a.pod.name, a.node, a.assignment) for a in world.log if isinstance(a, Bind)}
    again = {(o.pod.split("/")[1], o.node, o.assignment) for o in replay(saved, "x") if o.node}
    assert live
    assert again == live


def test_a_binding_on_the_way_counts_as_done_with_its_gpus() -> None:
    world = World(make.node(gpus=2, gpu_memory=1000))
    world.create(make.pod("first", make.spec(whole=1)))
    world.step()
    world.create(make.pod("second", make.spec(whole=1)))
    world.step(limit=0)
    saved = snapshot_of(world)
    assert [p.node for p in saved.pods] == ["node", ""]
    (outcome,) = replay(saved, "x")
    assert outcome.assignment[0][1][0].index == 1


def test_one_pod_alone_is_decided_with_its_gang_and_its_best_nodes() -> None:
    world = World(make.node("a"), make.node("b", cpu=16000))
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 2), make.pod("other"))
    world.step(limit=0)
    outcomes = replay(snapshot_of(world), "x", "default/g-1")
    assert sorted(o.pod for o in outcomes) == ["default/g-0", "default/g-1"]
    wanted = next(o for o in outcomes if o.pod == "default/g-1")
    assert [node for node, _ in wanted.best] == ["b", "a"]


def test_a_pod_that_fits_nowhere_says_why() -> None:
    world = World(make.node())
    world.create(make.pod(asked=make.spec(cpu=9000)))
    world.settle(0.0)
    (outcome,) = replay(snapshot_of(world), "x", "default/pod")
    assert outcome.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_further_objects_come_back_as_they_were() -> None:
    world = World()
    labels = (("team", "a"),)
    world.engine.learn([events.ObjectChanged("Namespace", "", "ns", labels)], 0.0)
    (found,) = snapshot_of(world).objects
    assert (found.kind, found.name, found.value) == ("Namespace", "ns", labels)


def test_every_kind_of_object_has_a_type_that_can_be_read() -> None:
    for kind, value_type in object_types().items():
        assert msgspec.json.Decoder(value_type), kind  # it raises where it cannot


def test_the_same_state_gives_the_same_file() -> None:
    world = random_world(1)
    taken = take(world.engine.view, PROFILES, 0, world.now)
    assert encode(taken) == encode(take(world.engine.view, PROFILES, 0, world.now))


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "alnair", "scheduler", "replay", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_replay_prints_the_same_every_time(tmp_path: Path) -> None:
    world = random_world(3)
    add_pods(world, random.Random(5), "new", 15)
    world.step(limit=0)
    file = tmp_path / "snapshot.json.gz"
    file.write_bytes(encode(take(world.engine.view, PROFILES, 3, world.now)))
    runs = [run(str(file), "--json", PYTHONHASHSEED=str(i)) for i in range(3)]
    assert {r.returncode for r in runs} == {0}, runs[0].stderr
    assert runs[0].stdout
    assert len({r.stdout for r in runs}) == 1


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is no snapshot of a scheduler"),
        (b"hello", "is no snapshot of a scheduler"),
        (gzip.compress(b"hello", mtime=0), "is no snapshot of a scheduler"),
        (gzip.compress(b'{"kind": "List"}', mtime=0), "is no snapshot of a scheduler"),
        (gzip.compress(b"{}", mtime=0)[:-3], "is no snapshot of a scheduler"),
        (
            gzip.compress(b'{"format":"alnair-scheduler-snapshot","version":9}', mtime=0),
            "is a snapshot of version 9, and this program reads version 1: use the version",
        ),
        (
            gzip.compress(b'{"format":"alnair-scheduler-snapshot","version":1,"time":1}', mtime=0),
            "is a damaged snapshot: Object missing required field",
        ),
    ],
)
def test_a_file_that_is_no_snapshot_is_said_to_be_none(
    data: bytes, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    with pytest.raises(SnapshotError) as raised:
        load(file)
    assert str(raised.value).startswith(f"{file} {problem}")


def test_a_pod_that_cannot_be_decided_on_is_said(tmp_path: Path) -> None:
    world = World(make.node("n"))
    world.create(make.pod("there"))
    world.settle(0.0)
    saved = snapshot_of(world)
    with pytest.raises(SnapshotError, match="has no pod none: write it as namespace/name"):
        replay(saved, "x", "none")
    with pytest.raises(SnapshotError, match="pod default/there of x is on n already"):
        replay(saved, "x", "default/there")


async def test_the_leader_gives_its_snapshot_and_a_standby_none() -> None:
    world = random_world(2)
    for taken in (take(world.engine.view, PROFILES, 0, 1.0), None):
        app = application(Decisions(), lambda: True, str, lambda taken=taken: taken)
        async with TestClient(TestServer(app)) as client:
            answer = await client.get("/debug/snapshot")
            if taken is None:
                assert answer.status == 503
            else:
                assert encode(decode(await answer.read())) == encode(taken)
