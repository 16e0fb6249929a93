"""How many writes go, and which of them first."""

from alnair.profiler.pods.write_budget import WriteBudget, turn


def test_after_a_burst_writes_go_at_a_rate() -> None:
    budget = WriteBudget(rate=0.1, burst=10.0)
    assert [budget.take(100.0, WriteBudget.PLAIN) for _ in range(12)] == [True] * 10 + [False] * 2
    assert budget.put_off == 2
    assert not budget.take(109.0, WriteBudget.PLAIN)
    assert budget.take(110.0, WriteBudget.PLAIN)
    later = [budget.take(10_000.0, WriteBudget.PLAIN) for _ in range(12)]
    assert later.count(True) == 10, "what was not used for long is not kept for ever"


def test_small_news_leave_room_for_others() -> None:
    budget = WriteBudget(rate=0.1, burst=10.0)
    assert sum(budget.take(0.0, WriteBudget.SMALL) for _ in range(20)) == 5
    assert sum(budget.take(0.0, WriteBudget.PLAIN) for _ in range(20)) == 5
    assert sum(budget.take(0.0, WriteBudget.URGENT) for _ in range(20)) == 10
    assert budget.take(0.0, WriteBudget.ALWAYS)


def test_the_others_pay_for_what_is_always_told() -> None:
    budget = WriteBudget(rate=1.0, burst=10.0)
    told = [
        budget.take(second / 10, WriteBudget.ALWAYS if second % 20 == 0 else WriteBudget.PLAIN)
        for second in range(10_000)
    ]
    assert all(told[::20])
    assert sum(told) <= 1000 + 10, "all of it together is within the rate"


def test_nothing_is_gained_by_a_clock_that_goes_back() -> None:
    budget = WriteBudget(rate=1.0, burst=2.0)
    assert [budget.take(at, 0.0) for at in (100.0, 100.0, 50.0, 50.5)] == [True, True, False, False]
    assert budget.take(51.5, 0.0)


def test_agents_look_at_different_times() -> None:
    turns = [turn(f"node-{number}", 30.0) for number in range(1000)]
    assert all(0 <= at < 30 for at in turns)
    by_second = [sum(int(at) == second for at in turns) for second in range(30)]
    assert max(by_second) < 60, by_second
    assert turn("node-1", 30.0) == turns[1]
