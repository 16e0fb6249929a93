"""Waits before another try: each thing has its own."""

from alnair.kube.backoff import Backoff, Backoffs


def test_each_key_waits_ever_longer_on_its_own_and_begins_anew_after_a_success() -> None:
    waits = Backoffs[str](lambda: Backoff(1.0, 4.0, lambda: 0.5))
    assert [waits.next("a") for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    assert waits.next("b") == 1.0
    waits.reset("a")
    assert waits.next("a") == 1.0
    waits.reset("a")
    waits.reset("b")
    assert len(waits) == 0
