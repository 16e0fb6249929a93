"""How long requests take, from what the watcher itself sends."""

from alnair.checker.over_time.request_times import RequestTimes


def test_without_requests_nothing_is_known_to_take_time() -> None:
    assert RequestTimes().longest(10.0, 11.0) == 0


def test_the_longest_counts_that_ended_not_long_before_or_is_under_way() -> None:
    times = RequestTimes()
    for sent, answered in ((0.0, 4.0), (6.0, 6.5), (6.5, 6.75)):
        times.sent(sent)
        times.answered(answered)
    assert times.longest(4.25, 7.0) == 4
    assert times.longest(7.0, 7.0) == 0.5
    assert times.longest(7.25, 7.5) == 0.25
    assert times.longest(8.0, 8.0) == 0
    times.sent(7.0)
    assert times.longest(8.0, 8.0) == 1
    assert times.longest(8.0, 9.0) == 2


def test_requests_of_long_ago_are_forgotten() -> None:
    times = RequestTimes()
    for sent in range(1000):
        times.sent(float(sent))
        times.answered(sent + 0.5)
    assert len(times._done) < 100
