"""A broken plugin of another package harms only the pods of the profiles that enable it."""

from typing import Any

import numpy as np
import pytest

from alnair.model import names
from alnair.model.workload import PodSpec
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.extension_points import Depends, Normalize, Profile
from alnair.scheduler.framework.plugin_errors import Faults, Guarded
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Rows
from kit import make
from kit.world import World

ONE_EACH = "for 1 rows: answer an array of one per row"


class Broken:
    """Does one thing wrong, as its mode says."""

    name = "Broken"

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def filter(self, spec: PodSpec, cluster: Cluster) -> "Part | None":
        if self.mode == "filter":
            raise KeyError("no such label")
        return None if self.mode in ("score", "nan") else Part(self.mode)

    def score(self, spec: PodSpec, cluster: Cluster) -> "Part | None":
        if self.mode == "score":
            raise ZeroDivisionError("division by zero")
        return Part(self.mode) if self.mode == "nan" else None


class Part:
    """Filter and score in one."""

    depends = Depends.BOOKED

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.normalize: Normalize | None = None

    def __call__(self, rows: Rows) -> Any:
        count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        match self.mode:
            case "mask":
                raise RuntimeError("mask")
            case "shape":
                return np.ones(count + 1, bool)
            case "type":
                return [True] * count
            case "nan":
                return np.full(count, np.nan)
        return np.ones(count, bool)

    def reasons(self, rows: Rows) -> Any:
        raise RuntimeError("never asked while all nodes will do")


def world_with(mode: str) -> tuple[World, list[str]]:
    """Two profiles, of which one has the broken plugin; and what its author would be told."""
    told: list[str] = []
    world = World(make.node("n", cpu=1000), check=False)
    good = profiles()[0]
    broken = Guarded(Broken(mode), Faults("plugin Broken of acme 1.0", told.append))
    bad = Profile("acme", [*good.plugins, broken], good.weights)
    world.engine = Engine([good, bad])
    return world, told


@pytest.mark.parametrize(
    ("mode", "what"),
    [
        ("filter", "filter: KeyError: 'no such label'"),
        ("mask", "its filter: RuntimeError: mask"),
        ("shape", f"its filter: TypeError: it answered (2,) {ONE_EACH}"),
        ("type", f"its filter: TypeError: it answered list {ONE_EACH}"),
    ],
)
def test_a_filter_that_fails_refuses_its_own_pods_and_says_so(mode: str, what: str) -> None:
    world, told = world_with(mode)
    world.create(make.pod("theirs", scheduler="acme"), make.pod("ours"))
    world.settle(0.0)
    assert world.where("theirs", "ours") == ["", "n"]
    text = f"plugin Broken of acme 1.0 failed in {what}"
    assert told == [text]
    (report,) = [r for r in world.reports if r.kind == "FailedScheduling"]
    assert report.message == f"0/1 nodes are available: 1 {text}."


def test_a_score_that_fails_has_no_opinion() -> None:
    for mode in ("score", "nan"):
        world, told = world_with(mode)
        world.create(make.pod("theirs", scheduler="acme"))
        world.settle(0.0)
        assert world.where("theirs") == ["n"], mode
        assert len(told) == 1


def test_the_guard_takes_part_where_its_plugin_does() -> None:
    guarded = Guarded(Broken(""), Faults("", print))
    points = {p for p in ("pre_filter", "filter", "score", "reserve", "key") if hasattr(guarded, p)}
    assert points == {"filter", "score"}


def test_a_sound_plugin_decides_the_same_guarded_or_not() -> None:
    nodes = [make.node(f"n{i}", cpu=2000 + 500 * i, gpus=i % 2) for i in range(6)]
    placements = []
    for guard in (False, True):
        world = World(*nodes, check=False)
        plain = profiles()[0]
        plugins = [Guarded(p, Faults(p.name, pytest.fail)) if guard else p for p in plain.plugins]
        world.engine = Engine([Profile(names.SCHEDULER, plugins, plain.weights)])
        for i in range(12):
            world.create(make.pod(f"p{i}", make.spec(cpu=700, slice_mib=500 * (i % 2))))
        world.settle(0.0)
        placements.append(sorted((p.name, p.node) for p in world.pods.values()))
    assert placements[0] == placements[1]
