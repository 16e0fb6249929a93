"""How long a unit waits after failures."""

from alnair.scheduler.queue.backoff import backoff


def test_back_off_doubles_up_to_ten_seconds() -> None:
    assert [backoff(n) for n in (0, 1, 2, 3, 4, 5, 6, 10**9)] == [1, 1, 2, 4, 8, 10, 10, 10]
