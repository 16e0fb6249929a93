"""Progress and remaining time of jobs whose end is known."""

import tracemalloc

import pytest

from alnair.profiler.progress.tracker import Progress, ProgressTracker


class Job:
    """A job that does steps on a clock of its own."""

    def __init__(self, total: int | None, begin: float = 1000.0) -> None:
        self.tracker, self.total = ProgressTracker(), total
        self.at, self.done = begin, 0
        self.tracker.add(self.at, 0, total)

    def work(self, steps: int, each: float) -> None:
        for _ in range(steps):
            self.at += each
            self.done += 1
            self.tracker.add(self.at, self.done, self.total)

    def told(self, now: float | None = None) -> Progress:
        found = self.tracker.estimate(now)
        assert found is not None
        return found


def test_before_anything_was_seen_nothing_is_told() -> None:
    assert ProgressTracker().estimate() is None
    assert Job(100).told() == Progress(0, 100, 0.0, at=1000.0)


def test_even_steps_give_the_rest_of_them_with_a_narrow_interval() -> None:
    job = Job(100)
    job.work(25, 2.0)
    told = job.told()
    assert (told.fraction, told.step_seconds, told.eta_s) == (0.25, 2.0, 150.0)
    assert told.eta_low_s is not None
    assert told.eta_high_s is not None
    assert 135 < told.eta_low_s < 150 < told.eta_high_s < 165


def test_without_a_total_there_is_no_eta() -> None:
    job = Job(None)
    job.work(25, 2.0)
    assert job.told() == Progress(25, step_seconds=2.0, at=1050.0)


def test_a_slow_first_step_is_not_taken_for_the_pace() -> None:
    job = Job(100)
    job.work(1, 120.0)
    job.work(20, 1.0)
    assert job.told().eta_s == pytest.approx(79)


def test_breaks_that_are_to_come_are_counted() -> None:
    job = Job(100)
    for _ in range(3):
        job.work(10, 1.0)
        job.at += 30  # an evaluation
    job.work(5, 1.0)
    assert job.told().step_seconds == pytest.approx(1.0)
    # After 40, 50, 60, 70, 80 and 90 steps; what comes after the last step is no step's time.
    assert job.told().eta_s == pytest.approx(65 + 6 * 30, rel=0.05)


def test_one_long_outage_is_not_expected_again() -> None:
    job = Job(100)
    job.work(30, 1.0)
    job.at += 3600
    job.work(20, 1.0)
    assert job.told().eta_s == pytest.approx(50)


def test_a_restart_goes_on_from_the_earlier_step_and_its_pause_is_no_pace() -> None:
    job = Job(100)
    job.work(50, 1.0)
    job.at, job.done = job.at + 600, 40
    job.tracker.add(job.at, 40, 100)
    job.work(10, 1.0)
    told = job.told()
    assert (told.restarts, told.fraction, told.eta_s) == (1, 0.5, pytest.approx(50))


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_an_elastic_job_that_changed_its_speed_is_judged_by_the_new_one(factor: float) -> None:
    job = Job(200)
    job.work(80, 1.0)
    job.work(20, factor)
    assert job.told().eta_s == pytest.approx(100 * factor, rel=0.02)


def test_a_job_whose_total_changes_is_asked_for_the_new_rest() -> None:
    job = Job(200)
    job.work(50, 1.0)
    job.total = 100
    job.work(1, 1.0)
    assert job.told().eta_s == pytest.approx(49)


def test_waiting_for_the_next_step_brings_the_end_nearer_only_by_one_step() -> None:
    job = Job(100)
    job.work(50, 2.0)
    assert job.told(job.at + 1).eta_s == pytest.approx(99)
    assert job.told(job.at + 3600).eta_s == pytest.approx(98)


def test_a_clock_that_goes_back_does_no_harm() -> None:
    tracker = ProgressTracker()
    for at, done in ((10, 1), (5, 2), (20, 3), (30, 4), (40, 5)):
        tracker.add(at, done, 10)
    told = tracker.estimate()
    assert told is not None
    assert told.eta_s is not None
    assert 0 <= told.eta_s < 100


def test_memory_does_not_grow_with_the_job() -> None:
    job = Job(1_000_000)
    job.work(2000, 0.1)
    tracemalloc.start()
    job.work(2000, 0.1)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 50_000
    assert job.told().eta_s == pytest.approx(99_600, rel=0.01)
