"""What was learned goes from leader to leader by the lease, and never costs it."""

import base64
import logging
import random
import zlib

import pytest

from alnair.processes.scheduler import published_learning as module
from alnair.processes.scheduler.published_learning import EVERY, PublishedLearning, read
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from kit import make
from kit.stream import Stream, share


def stream() -> Stream:
    return Stream(*(make.node(f"n{i}", cpu=32000, gpus=4, gpu_memory=10000) for i in range(4)))


def learned(count: int = 40) -> Stream:
    chance = random.Random(7)
    found = stream()
    found.hear_of(*(share(chance.choice((10, 40, 80))) for _ in range(count)))
    return found


def test_the_next_leader_knows_what_the_last_one_learned_of_pods_that_are_gone() -> None:
    last, new = learned(), stream()
    published = PublishedLearning()
    text = published.text(last.engine, EVERY)
    new.engine.learn([events.PluginStates(read(text, [new.profile]))], 0.0)
    assert new.engine.view.plugin_states() == last.engine.view.plugin_states()
    assert new.engine.view.plugin_states()


def test_who_does_not_lead_leaves_what_was_saved_before() -> None:
    published, engine = PublishedLearning(), learned().engine
    assert published.text(None, 0.0) == ""
    assert published.text(engine, 1.0)
    assert published.text(None, 500.0) == "", "another may lead meanwhile"


def test_at_the_end_of_a_term_the_latest_is_said_once_more() -> None:
    published, followed = PublishedLearning(), learned()
    before = published.text(followed.engine, 0.0)
    followed.hear_of(*[share(25)] * 40)
    published.end(followed.engine, 10.0)
    said = published.text(None, 10.5)
    assert said not in ("", before)
    assert published.text(None, 20.0) == ""


def test_an_engine_that_learned_nothing_says_nothing() -> None:
    published = PublishedLearning()
    assert published.text(stream().engine, EVERY) == ""
    assert published.text(Engine([stream().profile]), 9 * EVERY) == ""


def test_it_is_made_anew_only_now_and_then() -> None:
    published, followed = PublishedLearning(), learned()
    before = published.text(followed.engine, EVERY)
    followed.hear_of(*[share(25)] * 40)
    assert published.text(followed.engine, 1.5 * EVERY) is before
    assert published.text(followed.engine, 2 * EVERY) != before


def test_too_much_is_not_written_with_each_renewal_and_that_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    published, followed = PublishedLearning(), learned()
    before = published.text(followed.engine, EVERY)
    monkeypatch.setattr(module, "MOST", len(before) + 8)
    followed.hear_of(*(share(n) for n in range(1, 60)))
    for number in (2, 3):
        assert published.text(followed.engine, number * EVERY) == before
    assert caplog.text.count("too much for the lease") == 1


def test_a_fault_costs_no_lease(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    published, engine = PublishedLearning(), learned().engine
    monkeypatch.setattr(type(engine.view), "plugin_states", lambda self: 1 / 0)
    assert published.text(engine, EVERY) == ""
    assert "cannot be saved" in caplog.text


def packed(text: bytes) -> str:
    return base64.b64encode(zlib.compress(text)).decode()


@pytest.mark.parametrize(
    "text",
    [
        "no base64!",
        base64.b64encode(b"not compressed").decode(),
        packed(b"{"),
        packed(b'{"OpportunityCost": {"mix": {"seen": "many"}}}'),
        packed(b'{"' + b" " * 5 * 2**20 + b'": 1}'),
    ],
    ids=["text", "packing", "JSON", "state", "too large"],
)
def test_what_is_no_learning_is_left_with_a_warning(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert read(text, [stream().profile]) == {}
    assert "cannot be read" in caplog.text


def test_no_text_is_no_learning_and_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert read("", [stream().profile]) == {}
    assert not caplog.records
