"""What is written into a history once, twice or in another order is there once."""

from pathlib import Path

import pytest

from alnair.history.database import opening, queries, writing
from alnair.history.database.queries import Filter, Job
from alnair.history.database.rows import Gone, NodeRow, Position
from alnair.model.api_types import Workload
from alnair.model.usage import Controller
from kit.job_history import DAY, job_row, life, opened, pod_row, put


def jobs(folder: Path) -> list[Job]:
    with opening.readable(str(folder / "history.db")) as connection:
        return queries.jobs(connection, Filter())


def test_a_job_of_more_than_a_day_keeps_its_days(tmp_path: Path) -> None:
    # The original stored `timedelta.seconds`: of 25 hours one.
    engine = opened(tmp_path)
    end = 1010.0 + 25 * 3600 + 0.5
    pod = pod_row(started=1010.0, ended=end, outcome="completed")
    put(engine, jobs=[job_row()], pods=[pod])
    (job,) = jobs(tmp_path)
    assert job.duration == 25 * 3600 + 0.5 > DAY
    assert job.gpu_hours == pytest.approx(25 + 0.5 / 3600)


def test_what_is_written_twice_is_there_once(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    position = Position("n", "stream", 7)
    for _ in range(3):
        put(
            engine,
            jobs=[job_row()],
            pods=[pod_row(started=1010.0, ended=1110.0, outcome="completed")],
            usages=[life()],
            position=position,
        )
    (job,) = jobs(tmp_path)
    assert (job.pods, job.gpus, job.gpu_util, job.gpu_memory_mib) == (1, 1.0, 40.0, 2048.0)
    assert job.gpu_hours == pytest.approx(100 / 3600)
    with engine.connect() as connection:
        assert writing.position(connection, "n") == position
        assert writing.position(connection, "other") == Position("other")


@pytest.mark.parametrize("usage_first", [True, False])
def test_an_agent_may_tell_of_a_pod_before_or_after_the_api_server(
    tmp_path: Path, *, usage_first: bool
) -> None:
    engine = opened(tmp_path)
    writes = [
        {"usages": [life()]},
        {"jobs": [job_row()], "pods": [pod_row(ended=1110.0, outcome="completed")]},
    ]
    for changes in writes if usage_first else reversed(writes):
        put(engine, **changes)
    (job,) = jobs(tmp_path)
    assert (job.kind, job.name, job.user, job.gpu_util) == ("Job", "train", "ann", 40.0)
    assert (job.started, job.completed) == (1010.0, 1110.0)


def test_of_a_pod_that_only_its_agent_saw_the_controller_is_the_job(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    owner = Controller("batch/v1", "Job", "train", "job")
    put(engine, usages=[life("a", controller=owner), life("b", controller=owner), life("lone")])
    found = {job.name: (job.kind, job.pods, job.state) for job in jobs(tmp_path)}
    assert found == {"train": ("Job", 2, "deleted"), "lone": ("Pod", 1, "deleted")}


def test_why_a_pod_waited_is_known_when_it_waits_no_more(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    for told in (
        {"waited": "0/3 nodes: no GPU free"},
        {"waited": "0/4 nodes: no GPU free"},
        {"bound": 1009.0},
        {"bound": 1009.0, "started": 1010.0},
        {"started": 1010.0, "ended": 1110.0, "outcome": "completed"},
    ):
        put(engine, jobs=[job_row()], pods=[pod_row(**{"started": None} | told)])
    with opening.readable(str(tmp_path / "history.db")) as connection:
        found = queries.find(connection, "red", "job", "train")
    assert found is not None
    (pod,) = found.pods
    assert (pod.bound, pod.waited) == (1009.0, "0/4 nodes: no GPU free")


def test_a_pod_whose_job_was_forgotten_is_said_and_not_written(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    assert put(engine, pods=[pod_row()]) == {"pod"}
    assert jobs(tmp_path) == []
    assert put(engine, jobs=[job_row()], pods=[pod_row()]) == set()


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((("failed", 1100.0), ("completed", 1200.0)), "completed"),
        ((("completed", 1100.0), ("failed", 1200.0)), "failed"),
        ((("completed", 1100.0), ("deleted", 1200.0)), "completed"),
        ((("preempted", 1100.0), ("deleted", 1200.0)), "deleted"),
        ((("deleted", 1100.0), ("lost", 1200.0)), "lost"),
        ((("completed", 1100.0), ("", None)), "running"),
    ],
)
def test_how_a_job_ended_follows_from_its_pods(
    tmp_path: Path, outcomes: tuple[tuple[str, float | None], ...], expected: str
) -> None:
    pods = [
        pod_row(str(number), started=1010.0, ended=end, outcome=how)
        for number, (how, end) in enumerate(outcomes)
    ]
    put(opened(tmp_path), jobs=[job_row()], pods=pods)
    assert [job.state for job in jobs(tmp_path)] == [expected]


def test_a_pod_that_is_gone_keeps_how_it_had_ended(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    ended = pod_row("a", started=1010.0, ended=1100.0, outcome="completed")
    put(engine, jobs=[job_row()], pods=[ended, pod_row("b", started=1010.0)])
    put(engine, gone=[Gone("a", 1500.0, "deleted"), Gone("b", 1500.0, "deleted")])
    with opening.readable(str(tmp_path / "history.db")) as connection:
        found = queries.find(connection, "red", "job", "train")
    assert found is not None
    assert [(pod.outcome, pod.ended) for pod in found.pods] == [
        ("completed", 1100.0),
        ("deleted", 1500.0),
    ]


def test_the_gpus_of_a_job_are_the_most_at_one_time(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    first = pod_row("a", started=1010.0, ended=1100.0, outcome="failed")
    put(engine, jobs=[job_row()], pods=[first])
    put(engine, pods=[pod_row("b", created=1100.0), pod_row("c", created=1150.0)])
    assert [job.gpus for job in jobs(tmp_path)] == [2.0]


def test_a_pod_that_lasts_counts_as_far_as_it_was_measured(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    put(engine, jobs=[job_row()], pods=[pod_row(started=1010.0)], usages=[life(ended=None)])
    (job,) = jobs(tmp_path)
    assert (job.state, job.gpu_util) == ("running", 40.0)
    assert job.gpu_hours == pytest.approx(100 / 3600)


@pytest.mark.parametrize("ended", [None, 1110.0])
def test_the_use_of_a_slice_is_a_part_of_the_slice(tmp_path: Path, ended: float | None) -> None:
    row = pod_row(gpus=0.25, started=1010.0, ended=ended)
    put(opened(tmp_path), jobs=[job_row()], pods=[row], usages=[life(util=20.0, ended=ended)])
    (job,) = jobs(tmp_path)
    assert job.gpu_util == pytest.approx(80.0)
    put(opened(tmp_path), usages=[life(util=40.0, ended=ended)])  # as much as that it cannot use
    (job,) = jobs(tmp_path)
    assert job.gpu_util == pytest.approx(100.0)


def test_what_was_said_of_a_running_pod_does_not_replace_its_whole_life(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    put(engine, usages=[life(util=40.0)])
    put(engine, usages=[life(util=10.0, ended=None)])
    assert [job.gpu_util for job in jobs(tmp_path)] == [40.0]


def test_a_node_that_comes_and_goes_has_been_there_in_pairs(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    for ready, since in ((True, 10.0), (True, 10.0), (False, 50.0), (False, 60.0), (True, 70.0)):
        put(engine, nodes=[NodeRow(name="n", ready=ready, since=since, record={"name": "n"})])
    with engine.connect() as connection:
        assert queries.nodes(connection) == [({"name": "n"}, [[10.0, 50.0], [70.0, None]])]


def test_findings_are_kept_by_kind_and_go_with_their_job(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    put(engine, jobs=[job_row()], pods=[pod_row()])
    with engine.begin() as connection:
        assert writing.put_finding(connection, "job", "progress", {"step": 1}, 2000.0)
        assert writing.put_finding(connection, "job", "progress", {"step": 2}, 2001.0)
        assert not writing.put_finding(connection, "other", "progress", {}, 2001.0)
    with opening.readable(str(tmp_path / "history.db")) as connection:
        found = queries.find(connection, "red", "Job", "train")
    assert found is not None
    assert found.findings == {"progress": {"step": 2}}


def test_what_a_job_does_is_known_while_it_runs_and_after(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    put(engine, jobs=[job_row()], pods=[pod_row("a"), pod_row("b")])
    early = Workload(1, "2026-01-01T00:00:00Z", "training", progress=0.25)
    late = Workload(1, "2026-01-01T00:01:00Z", "training", "pytorch", progress=0.5)
    put(
        engine,
        usages=[life("a", ended=None, workload=late), life("b", ended=None, workload=early)],
    )
    with opening.readable(str(tmp_path / "history.db")) as connection:
        found = queries.find(connection, "red", "Job", "train")
    assert found is not None
    assert found.job.state == "running"
    assert found.findings["workload"] == {
        "v": 1, "t": "2026-01-01T00:01:00Z", "type": "training", "framework": "pytorch",
        "progress": 0.5, "pod": "a",
    }  # fmt: skip
    put(engine, usages=[life("a", workload=None)])
    with opening.readable(str(tmp_path / "history.db")) as connection:
        again = queries.find(connection, "red", "Job", "train")
    assert again is not None
    assert again.findings == found.findings
