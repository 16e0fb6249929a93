"""Jobs of a history arrive again in a simulation, as they were."""

from pathlib import Path

import pytest

from alnair.history.database import facts
from alnair.history.database.rows import NodeRow
from alnair.sim.inputs import history_jobs
from alnair.sim.inputs.loading import load
from alnair.sim.inputs.options import Found, InputOptions
from alnair.traces.files import TraceFileError
from kit.job_history import job_row, life, opened, pod_row, put

NODE = {
    "name": "n",
    "cpu_milli": 8000,
    "memory": 1 << 34,
    "model": "T4",
    "gpus": [{"uuid": "G", "index": 0, "model": "T4", "memory_mib": 16384}],
}


def kept(folder: Path, *, nodes: bool = True) -> str:
    ran = {"started": 1010.0, "ended": 1110.0, "outcome": "completed", "gpus": 1.0}
    put(
        opened(folder),
        jobs=[job_row("a", "train"), job_row("b", "train"), job_row("c", "lasting")],
        pods=[
            pod_row("a0", "a", **ran),
            pod_row("a1", "a", **ran),
            # It failed and came again: one at a time.
            pod_row("b0", "b", created=2000.0, started=2010.0, ended=2100.0, outcome="failed"),
            pod_row("b1", "b", created=2200.0, started=2210.0, ended=2310.0, outcome="completed"),
            pod_row("c0", "c", created=3000.0, started=3001.0),
        ],
        nodes=[NodeRow(name="n", ready=True, since=1.0, record=NODE)] if nodes else [],
        usages=[life("a0", util=25.0), life("a1", util=25.0)],
    )
    return str(folder / "history.db")


def read(source: str, **options: object) -> Found:
    return history_jobs.read(source, InputOptions(**options), ())  # type: ignore[arg-type]


def test_each_job_comes_when_it_came_with_the_pods_of_one_time_and_its_own_duration(
    tmp_path: Path,
) -> None:
    found = read(kept(tmp_path))
    assert [(job.submitted, len(job.pods), job.duration, job.util) for job in found.jobs] == [
        (0.0, 2, 100.0, 25.0),
        (1000.0, 1, 300.0, 100.0),
    ]
    assert found.jobs[0].gang is not None
    assert len({job.name for job in found.jobs}) == 2
    assert found.notes == ["1 job has not ended: left out"]
    assert [node.name for node in found.nodes] == ["n"]
    assert len(read(kept(tmp_path), default_duration=60.0).jobs) == 3


def test_a_history_is_a_scenario_like_any_trace(tmp_path: Path) -> None:
    source = kept(tmp_path)

    def history(options: InputOptions, nodes: tuple[object, ...]) -> Found:
        return history_jobs.read(source, options, nodes)  # type: ignore[arg-type]

    loaded = load([source], InputOptions(history=history, nodes="2x4xT4", limit=1))
    assert (loaded.format, len(loaded.scenario.jobs), len(loaded.scenario.nodes)) == (
        "history", 1, 2,
    )  # fmt: skip


def test_a_history_without_nodes_says_how_to_name_some(tmp_path: Path) -> None:
    with pytest.raises(TraceFileError, match="name some with --nodes"):
        read(kept(tmp_path, nodes=False))
    with pytest.raises(TraceFileError, match="there is no such history"):
        read(str(tmp_path / "none.db"))


def test_of_a_history_its_last_days_may_be_taken(tmp_path: Path) -> None:
    source = kept(tmp_path)
    with opened(tmp_path).begin() as connection:
        facts.put_looked(connection, 3500.0)
    found = history_jobs.read(source, InputOptions(), (), last=1600.0)
    assert [(job.submitted, job.duration) for job in found.jobs] == [(0.0, 300.0)]
    assert len(history_jobs.read(source, InputOptions(), (), last=1e9).jobs) == 2
