"""What became of each pod, and the figures that follow from it."""

import pytest

from alnair.live.replay.replayed_pods import Counts, ReplayedPods, reason


def ledger(*names: str) -> ReplayedPods:
    return ReplayedPods(names or ("a", "b"), 0.0)


def test_a_pod_is_created_then_bound() -> None:
    book = ledger()
    book.acknowledged("a", 1.0)
    book.seen("a", "u", "", "", 1.1, listed=False)
    book.seen("a", "u", "n", "", 1.5, listed=False)
    assert book.counts() == Counts(pods=2, there=1, placed=1, refused=0)
    assert book.latencies() == [0.5]
    assert book.pods_per_second() == 2.0
    assert book.missing() == ["b"]


def test_a_binding_that_is_seen_before_the_answer_took_no_time() -> None:
    book = ledger()
    book.seen("a", "u", "n", "", 1.0, listed=False)
    book.acknowledged("a", 1.2)
    assert book.latencies() == [0.0]
    assert book.pods_per_second() is None


def test_a_pod_of_an_earlier_run_counts_as_placed_and_not_as_measured() -> None:
    book = ledger()
    book.seen("a", "u", "n", "", 1.0, listed=True)
    assert book.counts().placed == 1
    assert book.latencies() == []
    assert book.pods_per_second() is None


def test_a_refused_pod_may_be_placed_later() -> None:
    book = ledger()
    book.seen("a", "u", "", "no room", 1.0, listed=False)
    book.seen("a", "u", "", "still no room", 2.0, listed=False)
    assert book.counts().refused == 1
    assert book.reasons() == {"still no room": 1}
    assert book.moved == 1.0
    book.seen("a", "u", "n", "still no room", 3.0, listed=False)
    assert book.counts() == Counts(pods=2, there=1, placed=1, refused=0)
    assert book.reasons() == {}


def test_it_is_settled_when_every_pod_has_a_node_or_a_verdict() -> None:
    book = ledger()
    book.seen("a", "u", "n", "", 1.0, listed=False)
    book.seen("b", "v", "", "", 1.0, listed=False)
    assert (book.counts().undecided, book.counts().is_settled) == (1, False)
    book.seen("b", "v", "", "no room", 2.0, listed=False)
    assert (book.counts().undecided, book.counts().is_settled) == (0, True)


def test_waiting_begins_when_a_pod_waits_and_anew_with_every_decision() -> None:
    book = ledger("a", "b", "c")
    book.seen("a", "u", "", "", 50.0, listed=False)
    assert book.waiting_since == 50.0
    book.seen("b", "v", "", "", 60.0, listed=False)
    assert book.waiting_since == 50.0
    book.seen("b", "v", "n", "", 70.0, listed=False)
    assert book.waiting_since == 70.0


def test_a_pod_that_goes_has_to_be_created_again() -> None:
    book = ledger()
    book.seen("a", "u", "n", "", 1.0, listed=False)
    book.deleted("a", "another", 2.0)
    assert book.gone == []
    book.deleted("a", "u", 2.0)
    assert (book.gone, book.counts().placed, book.missing()) == (["a"], 0, ["a", "b"])
    book.seen("a", "v", "m", "", 3.0, listed=False)
    assert book.counts().placed == 1


def test_what_is_missing_in_a_list_has_gone_and_a_new_uid_is_a_new_pod() -> None:
    book = ledger()
    book.seen("a", "u", "n", "", 1.0, listed=False)
    book.seen("b", "v", "n", "", 1.0, listed=False)
    book.listed({"v"}, 2.0)
    assert book.gone == ["a"]
    book.seen("b", "w", "", "", 3.0, listed=False)
    assert book.counts() == Counts(pods=2, there=1, placed=0, refused=0)


def test_pods_of_others_are_passed_over() -> None:
    book = ledger()
    book.seen("x", "u", "n", "", 1.0, listed=False)
    book.deleted("x", "u", 1.0)
    assert book.counts() == Counts(2, 0, 0, 0)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "0/1213 nodes are available: 1056 Insufficient nvidia.com/gpu, 157 Insufficient cpu.",
            "Insufficient cpu, Insufficient nvidia.com/gpu",
        ),
        (
            (
                "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, "
                "preemption: 0/3 nodes are available: 3 No preemption victims found."
            ),
            "Insufficient cpu",
        ),
        (
            (
                "0/2 nodes are available: 1 node(s) had untolerated taint {a: b, c}, 1 Too "
                "many pods. preemption: 0/2 nodes are available: 2 Preemption is not helpful."
            ),
            "Too many pods, node(s) had untolerated taint {a: b, c}",
        ),
        ("no nodes available to schedule pods", "no nodes available to schedule pods"),
        (
            "container 'main' asks for 130 % of one GPU",
            "container 'main' asks for 130 % of one GPU",
        ),
    ],
)
def test_equal_causes_become_equal_reasons(message: str, expected: str) -> None:
    assert reason(message) == expected


def test_reasons_add_up_to_the_refused_pods_most_frequent_first() -> None:
    book = ledger("a", "b", "c")
    for name, nodes in (("a", 3), ("b", 5)):
        message = f"0/{nodes} nodes are available: {nodes} Insufficient cpu."
        book.seen(name, name, "", message, 1.0, listed=False)
    book.seen("c", "c", "", "never fits", 1.0, listed=False)
    assert list(book.reasons().items()) == [("Insufficient cpu", 2), ("never fits", 1)]
