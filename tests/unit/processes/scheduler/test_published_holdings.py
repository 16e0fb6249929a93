"""What the leader's lease says that it holds: small, the same text while the same is held."""

import json

import pytest

from alnair.processes.scheduler.published_holdings import PublishedHoldings
from alnair.scheduler.advice import holdings as module
from kit import make
from kit.world import World


def waiting_for_victims(count: int) -> World:
    world = World(make.node("n", cpu=count * 1000))
    world.graceful = True
    world.create(*(make.pod(f"low-{i}", make.spec(cpu=1000)) for i in range(count)))
    world.settle()
    world.create(*(make.pod(f"high-{i}", make.spec(cpu=1000), priority=i) for i in range(1, count)))
    world.settle(0.0)
    return world


def test_without_an_engine_or_anything_held_it_says_that_nothing_is() -> None:
    assert json.loads(PublishedHoldings().text(None)).keys() == {"v", "t"}
    assert json.loads(PublishedHoldings().text(World().engine)).keys() == {"v", "t"}


def test_the_text_changes_only_with_what_is_held() -> None:
    published = PublishedHoldings()
    world = waiting_for_victims(3)
    text = published.text(world.engine)
    assert [r["pod"] for r in json.loads(text)["room"]] == ["default/high-2", "default/high-1"]
    assert published.text(world.engine) is text
    for pod in [p for p in world.pods.values() if p.deleting]:
        world.delete_uid(pod.uid)
    world.settle()
    assert "room" not in json.loads(published.text(world.engine))


def test_it_stays_small_whatever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PODS", 2)
    said = json.loads(PublishedHoldings().text(waiting_for_victims(6).engine))
    assert [r["pod"] for r in said["room"]] == ["default/high-5", "default/high-4"]
    assert said["left_out"] == 3


def test_a_fault_costs_no_lease(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    published = PublishedHoldings()
    text = published.text(None)
    world = World()
    monkeypatch.setattr(type(world.engine.view), "reservation", property(lambda self: 1 / 0))
    assert published.text(world.engine) == text
    assert "cannot be told" in caplog.text
