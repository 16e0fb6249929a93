"""Metrics of small histories, computed by hand."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alnair.history.history import History, PairRate
from alnair.history.metrics import compute
from alnair.history.metrics.all_metrics import SPANS
from alnair.history.metrics.fairness import jain
from alnair.history.metrics.fragmentation import workload
from alnair.history.metrics.isolated import Alone, completions
from alnair.history.metrics.sizes import SIZES, sizes
from alnair.history.metrics.steps import held
from alnair.scheduler.published.fragmentation import FreeNode, fragmentation, target_workload
from alnair.traces.openb import TracePod
from kit.histories import any_history, history, job, left_at, node, stay, stranded_at, there

TWO = [node("a", 2)]


def test_gpu_hours_are_what_was_held_for_how_long() -> None:
    found = compute(
        history(
            3600.0,
            TWO,
            job("whole", 0, [stay("a", 0, 1800)], finished=1800, util=50.0),
            job("half", 0, [stay("a", 900, gpus=[(1, 500.0)])], gpu_milli=500, util=None),
        )
    ).gpu
    assert found.capacity_hours == 2
    assert found.allocated_hours == pytest.approx(0.5 + 0.375)
    assert found.allocated_pct == pytest.approx(43.75)
    assert found.peak_pct == 75
    assert (found.used_hours, found.used_pct) == (0.25, 12.5)
    assert found.unmeasured_hours == pytest.approx(0.375)


def test_allocation_counts_apart_while_pods_waited_and_at_its_peak() -> None:
    nodes = [node("a", 2), node("b", 2, up=[(0, 50)])]
    found = compute(
        history(
            100.0,
            nodes,
            job("first", 0, [stay("a", 0, 60)], finished=60),
            job("second", 40, [stay("a", 60, 90, gpus=[(0, 1000.0), (1, 1000.0)])], gpus=2),
            job("cpu", 0, [], gpus=0),
        )
    ).gpu
    # From 40 to 60 the second waits: one GPU of four for 10 s, and then of two.
    assert found.contended_pct == pytest.approx(100 * 20 / (40 + 20))
    assert found.peak_pct == 100
    assert compute(history(100.0, nodes)).gpu.contended_pct is None


def test_a_measured_stay_overrides_what_its_job_is_said_to_use() -> None:
    one = job("j", 0, [stay("a", 0, 1800, used=1200.0)], finished=1800, util=50.0)
    assert compute(history(3600.0, TWO, one)).gpu.used_hours == pytest.approx(1 / 3)


def test_a_lost_node_offers_nothing_while_it_is_gone() -> None:
    nodes = [node("a", 2, up=[(0, 50), (75, None)])]
    one = job("j", 0, [stay("a", 0, 50, "lost", lost=50.0)])
    found = compute(history(100.0, nodes, one))
    assert found.gpus == 1.5
    assert found.fragmentation.lost_gpus == 0.5
    assert found.gpu.capacity_hours == pytest.approx(150 / 3600)
    assert found.fragmentation.free_gpus == 1.0
    assert found.disruption.ended["lost"] == 1
    assert found.disruption.wasted_gpu_hours["lost"] == pytest.approx(50 / 3600)


@pytest.mark.parametrize(
    ("cause", "asked"),
    [
        ("cpu", {"cpu_milli": 9000}),
        ("memory", {"memory_mib": 70000}),
        ("several", {"cpu_milli": 9000, "memory_mib": 70000}),
        ("model", {"models": ("A100",), "cpu_milli": 9000}),
        ("gpu-too-few", {"gpus": 4}),
        ("no-gpu-asked", {"gpus": 0}),
    ],
)
def test_free_gpu_that_is_of_no_use_has_one_cause(cause: str, asked: dict[str, object]) -> None:
    found = compute(history(10.0, TWO, job("j", 0, [], **asked))).fragmentation
    assert {c: gpus for c, gpus in found.stranded_gpus.items() if gpus} == {cause: 2.0}
    assert found.usable_gpus == 0
    # F knows no memory.
    assert found.f_pct == (0 if cause == "memory" else 100)


def test_pieces_smaller_than_what_is_asked_are_stranded() -> None:
    filler = job("filler", 0, [stay("a", 0, gpus=[(0, 700.0)])], gpu_milli=700, cpu_milli=0)
    found = compute(history(10.0, TWO, filler)).fragmentation
    assert found.stranded_gpus["gpu-too-small"] == pytest.approx(0.3)
    assert found.usable_gpus == pytest.approx(1.0)
    assert found.f_pct == pytest.approx(15.0)


def test_a_pod_waits_from_its_submission_and_again_after_its_eviction() -> None:
    stays = [stay("a", 10, 20, "preempted", lost=4.0), stay("a", 25, 40)]
    found = compute(history(50.0, TWO, job("j", 5, stays, gpus=1, finished=40)))
    assert found.queue.mean_pods == pytest.approx((5 + 5) / 50)
    assert (found.queue.max_pods, found.queue.max_gpus) == (1, 1.0)
    assert found.wait["all"].over.mean == 5
    assert found.completion["1"].over.max == 35
    assert found.disruption.ended == {"preempted": 1, "evicted": 0, "lost": 0, "failed": 0}
    assert found.disruption.wasted_gpu_hours["preempted"] == pytest.approx(4 / 3600)
    assert found.disruption.jobs == 1


def test_what_is_unfinished_is_told_beside_what_is_finished() -> None:
    found = compute(
        history(
            100.0,
            TWO,
            job("done", 0, [stay("a", 0, 10)], finished=10, duration=10.0),
            job("runs", 20, [stay("a", 50)], duration=10.0),
            job("waits", 40, [], duration=10.0, refused="too large"),
            job("gave-up", 40, [], duration=10.0, refused="too large", gone=60.0),
        )
    )
    assert msgspec.structs.astuple(found.jobs) == (4, 1, 1, 1, 1)
    wait, completion = found.wait["all"], found.completion["all"]
    assert (wait.over.count, wait.over.mean, wait.open) == (2, 15, 2)
    assert wait.at_least.mean == pytest.approx((0 + 30 + 60 + 20) / 4)
    assert (completion.over.count, completion.over.mean, completion.open) == (1, 10, 3)
    assert completion.at_least.max == 80
    assert found.slowdown["all"].at_least.max == 8
    assert (found.makespan, found.makespan_open) == (100, True)
    assert found.refusals == {"too large": 2}


def test_the_slow_down_of_short_jobs_is_bounded() -> None:
    short = job("j", 0, [stay("a", 9, 10)], finished=10, duration=1.0)
    found = compute(history(20.0, TWO, short))
    assert found.slowdown["all"].over.mean == 10
    assert found.bounded_slowdown["all"].over.mean == 1


def test_jobs_of_each_size_have_their_own_figures() -> None:
    of = sizes(np.array([0, 0.01, 0.5, 1, 1.5, 4, 4.5, 8, 9]))
    names = ["cpu", "shared", "shared", "1", "2-4", "2-4", "5-8", "5-8", "more"]
    assert [SIZES[number] for number in of] == names
    found = compute(
        history(
            10.0,
            TWO,
            job("c", 0, [stay("a", 1, gpus=[])], gpus=0),
            job("g", 0, [stay("a", 3, gpus=[(0, 1000.0), (1, 1000.0)])], gpus=2),
        )
    )
    assert {name: w.over.mean for name, w in found.wait.items()} == {"all": 2, "cpu": 1, "2-4": 3}


def test_percentiles_interpolate() -> None:
    jobs = [job(f"j{n}", 0, [stay("a", n, n, gpus=[])], gpus=0, finished=n) for n in range(101)]
    over = compute(history(200.0, TWO, *jobs)).wait["all"].over
    assert (over.mean, over.p50, over.p90, over.p99, over.max) == (50, 50, 90, 99, 100)


def test_a_gang_is_whole_once_all_its_pods_are_there() -> None:
    found = compute(
        history(
            100.0,
            [node("a", 4)],
            job("whole", 0, [stay("a", 10, 60)], [stay("a", 12, 50)], gang=True, finished=60),
            job("partly", 0, [stay("a", 10, 46)], [], gang=True),
            job("never", 0, [], [], gang=True),
            job("no-gang", 0, [stay("a", 10)], []),
        )
    )
    gangs = found.gangs
    assert (gangs.total, gangs.whole, gangs.in_part, gangs.waiting) == (3, 1, 1, 1)
    assert gangs.whole_pct == 50
    assert gangs.spread.max == 2
    assert gangs.partial_gpu_hours == pytest.approx((2 + 36) / 3600)
    assert found.wait["all"].over.mean == pytest.approx((12 + 10) / 2)
    assert found.wait["all"].open == 2


def test_a_gang_that_needs_fewer_than_it_has_is_whole_with_these() -> None:
    some = job("g", 0, [stay("a", 10)], [stay("a", 30)], [], gang=True, least=1)
    assert compute(history(100.0, TWO, some)).gangs.whole == 1


def test_pods_that_were_never_there_together_are_no_whole_gang() -> None:
    one = job("g", 0, [stay("a", 10, 20)], [stay("a", 20, 30)], gang=True, finished=30)
    gangs = compute(history(100.0, TWO, one)).gangs
    assert (gangs.whole, gangs.in_part) == (0, 1)
    assert gangs.partial_gpu_hours == pytest.approx(20 / 3600)


def test_a_gang_that_loses_a_member_is_in_part_again() -> None:
    lossy = job("g", 0, [stay("a", 0, 100)], [stay("a", 0, 60, "lost")], gang=True)
    gangs = compute(history(100.0, TWO, lossy)).gangs
    assert (gangs.whole, gangs.in_part) == (1, 0)
    assert gangs.partial_gpu_hours == pytest.approx(40 / 3600)


@pytest.mark.parametrize(
    ("shares", "index"),
    [([1, 1, 1], 1.0), ([1, 0], 0.5), ([3, 1], 16 / 20), ([0, 0], None), ([], None)],
)
def test_jains_index(shares: list[float], index: float | None) -> None:
    assert jain(shares) == (None if index is None else pytest.approx(index))


def test_fairness_compares_what_users_got_with_what_they_wanted() -> None:
    # Each user has one GPU of two: alone, each would end at once after its work.
    found = compute(
        history(
            100.0,
            TWO,
            job("x1", 0, [stay("a", 0, 50)], user="x", finished=50, duration=50.0),
            job("x2", 0, [stay("a", 0, 50)], user="x", finished=50, duration=50.0),
            job("y1", 0, [stay("a", 50, 100)], user="y", finished=100, duration=50.0),
        )
    ).fairness
    assert (found.users["x"].share, found.users["y"].share) == (1.0, 0.5)
    assert found.jain == pytest.approx(1.5**2 / (2 * 1.25))
    assert found.users["x"].rho == pytest.approx(100 / 150)  # 50 and 100 with a GPU of its own
    assert found.users["y"].rho == found.worst_rho == 2.0


def test_unfinished_jobs_count_in_fairness_as_far_as_they_got() -> None:
    user = compute(
        history(
            100.0,
            TWO,
            job("done", 0, [stay("a", 0, 50)], finished=50, duration=50.0),
            job("waits", 20, [], duration=10.0),
        )
    ).fairness.users["u"]
    assert (user.rho, user.rho_at_least, user.unfinished) == (1.0, (50 + 80) / (50 + 10), 1)


def test_alone_jobs_start_when_there_is_room_and_may_overtake() -> None:
    jobs = [Alone(0, 2, 10), Alone(1, 4, 5), Alone(2, 1, 3), Alone(3, 8, 2)]
    # The third overtakes the second; the last is twice as long on 4 GPUs as on 8.
    assert completions(jobs, 4) == [10, 14, 3, 16]
    assert completions([], 4) == []


def test_pairs_are_told_by_kind() -> None:
    jobs = [job(name, 0, [stay("a", 0)], kind=name[0]) for name in ("bert", "adam", "also")]
    found = history(100.0, TWO, *jobs)
    found.pairs.append(
        PairRate(first="bert", second="adam", seconds=10, first_rate=0.5, second_rate=1.0)
    )
    found.pairs.append(
        PairRate(first="also", second="bert", seconds=30, first_rate=0.6, second_rate=0.7)
    )
    sharing = compute(found).sharing
    (pair,) = sharing.pairs
    assert (pair.first, pair.second, pair.seconds) == ("a", "b", 40)
    assert pair.first_rate == pytest.approx((1.0 * 10 + 0.6 * 30) / 40)
    assert sharing.throughput_mean == pair.throughput == pytest.approx((15 + 39) / 40)
    assert (sharing.rate_mean, sharing.rate_min) == (pytest.approx(54 / 80), 0.5)


def test_decisions_are_counted_per_second_of_the_schedulers_own_time() -> None:
    found = history(100.0, TWO)
    found.decisions, found.decision_seconds = 500, 2.0
    assert compute(found).decisions.per_second == 250
    assert compute(history(100.0, TWO)).decisions.per_second is None


def test_nothing_at_all_has_metrics_too() -> None:
    found = compute(history(0.0, []))
    assert (found.jobs.total, found.gpu.allocated_pct, found.fairness.jain) == (0, 0.0, None)
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found


def test_a_stay_on_an_unknown_gpu_is_refused() -> None:
    wrong = job("j", 0, [stay("a", 0, gpus=[(7, 1000.0)])])
    with pytest.raises(ValueError, match="pod j-0: node a has no GPU 'a/7'"):
        compute(history(1.0, TWO, wrong))


# --- against plain Python ---------------------------------------------------------------------


@given(any_history())
@settings(max_examples=60, deadline=None)
def test_whatever_happened_the_sums_hold(found: History) -> None:
    metrics = compute(found)
    clipped = [
        (min(one.end if one.end is not None else found.end, found.end) - one.begin)
        * sum(part.milli for part in one.gpus)
        / 1000
        for pod in found.pods.values()
        for one in pod.stays
    ]
    gpu, left = metrics.gpu, metrics.fragmentation
    assert gpu.allocated_hours * 3600 == pytest.approx(sum(clipped))
    assert gpu.used_hours + gpu.unmeasured_hours <= gpu.allocated_hours + 1e-9
    assert left.usable_gpus + sum(left.stranded_gpus.values()) == pytest.approx(left.free_gpus)
    assert all(gpus >= -1e-9 for gpus in (*left.stranded_gpus.values(), left.usable_gpus))
    assert metrics.jobs.total == sum(msgspec.structs.astuple(metrics.jobs)[1:])
    assert metrics.pods.total == sum(msgspec.structs.astuple(metrics.pods)[1:])
    assert metrics.fairness.jain is None or 0 < metrics.fairness.jain <= 1 + 1e-9
    for by_size in (metrics.wait, metrics.completion, metrics.pod_wait):
        parts = [s for name, s in by_size.items() if name != "all"]
        assert by_size["all"].over.count == sum(s.over.count for s in parts)
        assert by_size["all"].open == sum(s.open for s in parts)
        assert by_size["all"].over.count + by_size["all"].open == by_size["all"].at_least.count
    users = metrics.fairness.users.values()
    assert sum(user.gpu_hours for user in users) == pytest.approx(gpu.allocated_hours)


@given(any_history(), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_at_every_moment_the_series_are_what_one_look_would_find(
    found: History, second: int
) -> None:
    # Everything happens at whole seconds, so that the mean over one is the value in it.
    values = compute(found, spans=100).series.values
    left = left_at(found, second)
    free = [FreeNode(node.cpu_milli, node.gpus, node.model) for node in left]
    pods = [
        TracePod(p.uid, p.cpu_milli, p.memory_mib, p.gpus, p.gpu_milli, models=p.models)
        for p in found.pods.values()
    ]
    assert values["f"][second] == pytest.approx(
        fragmentation(free, target_workload(pods)) / 1000, abs=1e-6
    )
    for cause, gpus in stranded_at(left, workload(found)).items():
        assert values[f"stranded_{cause}"][second] == pytest.approx(gpus, abs=1e-6), cause
    taken = [
        sum(part.milli for part in one.gpus) / 1000
        for pod in found.pods.values()
        for one in pod.stays
        if there(one, second)
    ]
    assert values["allocated"][second] == pytest.approx(sum(taken), abs=1e-9)
    waits = [
        pod
        for pod in found.pods.values()
        if pod.submitted <= second and not any(one.begin <= second for one in pod.stays)
    ]
    assert values["waiting_pods"][second] == len(waits)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 9)), max_size=9),
    st.integers(0, 30),
    st.integers(31, 60),
)
def test_steps_agree_with_a_count_of_every_second(
    spans: list[tuple[int, int, int]], begin: int, end: int
) -> None:
    rows = np.array(spans, dtype=np.float64).reshape(-1, 3)
    steps = held(rows[:, 0], np.maximum(rows[:, 0], rows[:, 1]), rows[:, 2])
    plain = [sum(n for a, b, n in spans if a <= second < b) for second in range(60)]
    assert steps.integral(begin, end) == pytest.approx(sum(plain[begin:end]))
    assert steps.peak(begin, end) == pytest.approx(max(plain[begin:end]))
    assert steps.means(np.arange(61.0)) == pytest.approx(plain)


def test_series_have_as_many_spans_as_asked_for() -> None:
    one = history(10.0, TWO, job("j", 0, [stay("a", 0, 5)], finished=5))
    assert len(compute(one).series.edges) == SPANS + 1
    assert compute(one, spans=2).series.values["allocated"] == [1.0, 0.0]
