"""Findings of jobs: bounded writes, and a history that is away."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from alnair.history.database import queries
from alnair.history.database.addresses import HistoryError
from alnair.history.database.rows import Changes, JobRow, PodRow
from alnair.kube.client import Client
from alnair.kube.objects.annotations import rfc3339
from alnair.live.recording.record_lines import PodRecord
from alnair.model.api_types import Workload
from alnair.model.owners import Owner, OwnerRef
from alnair.processes.controller.history.job_findings import AT_ONCE, KIND, LEAST, JobFindings
from alnair.processes.controller.history.seen import PodSeen
from alnair.processes.controller.history.store import Store
from alnair.serving.exposition import text_of

JOBS = AT_ONCE + 50
NOW = 1_800_000_000.0


class Scene:
    """Jobs of two pods each, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(str(folder / "history.db"))
        self.now = NOW
        self.pods: dict[tuple[str, str], PodSeen] = {}
        self.findings = self.begin()

    def begin(self) -> JobFindings:
        """As a controller that begins."""
        return JobFindings(
            cast("Client", None),
            self.store,
            lambda: self.pods,
            lambda uid: uid.rpartition("-")[0],
            now=lambda: self.now,
        )

    async def run(self, count: int) -> None:
        """Let so many jobs run."""
        jobs = [
            JobRow(
                uid=f"job{n}",
                namespace="team",
                api_group="batch",
                api_version="v1",
                kind="Job",
                name=f"job{n}",
                series="Job/job",
                user="team",
                submitted=NOW,
            )
            for n in range(count)
        ]
        pods = [
            PodRow(
                uid=f"job{n}-{rank}",
                job=f"job{n}",
                namespace="team",
                name=f"job{n}-{rank}",
                created=NOW,
                started=NOW,
            )
            for n in range(count)
            for rank in range(2)
        ]
        await self.store.write(Changes(jobs=jobs, pods=pods), lambda: self.now)
        self.tell(count, 0.1)

    def tell(self, count: int, progress: float) -> None:
        """Let each pod say how far it is."""
        for n in range(count):
            for rank in range(2):
                name = f"job{n}-{rank}"
                record = PodRecord(uid=name, namespace="team", name=name, job=f"Job/job{n}")
                ref = OwnerRef("", "v1", "Pod", "team", name, name)
                said = Workload(1, rfc3339(self.now), type="training", progress=progress)
                owner = Owner(ref=ref, controller=None, created=NOW, labels={})
                self.pods["team", name] = PodSeen(record, owner, "", NOW, None, said, rank)

    async def found(self, count: int = JOBS) -> dict[str, float]:
        """What the history has: job → progress."""
        uids = [f"job{n}" for n in range(count)]
        documents = await self.store.read(lambda one: queries.findings(one, uids, KIND))
        return {uid: document["progress"] for uid, document in documents.items()}


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.store.close()


async def test_no_more_than_some_jobs_are_written_at_once_and_each_has_its_turn(
    scene: Scene,
) -> None:
    await scene.run(JOBS)
    await scene.findings.look()
    assert len(await scene.found()) == AT_ONCE
    scene.now += 5
    await scene.findings.look()
    assert len(await scene.found()) == JOBS


async def test_progress_is_written_once_a_minute_and_another_leader_goes_on(scene: Scene) -> None:
    await scene.run(1)
    await scene.findings.look()
    for progress in (0.2, 0.3):
        scene.now += LEAST / 3
        scene.tell(1, progress)
        await scene.findings.look()
    assert await scene.found() == {"job0": 0.1}
    again = scene.begin()
    await again.look()
    assert await scene.found() == {"job0": 0.1}, "it knows when that was written"
    scene.now += LEAST / 3 + 1
    await again.look()
    assert await scene.found() == {"job0": 0.3}


async def test_pods_that_go_leave_what_was_found(scene: Scene) -> None:
    await scene.run(1)
    await scene.findings.look()
    assert 'alnair_job_progress_ratio{job="Job/job0"' in text_of(scene.findings.metrics())
    scene.pods.clear()
    scene.now += 999
    await scene.findings.look()
    assert await scene.found() == {"job0": 0.1}
    assert "job0" not in text_of(scene.findings.metrics())


async def test_a_history_that_is_away_is_said_once_and_written_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.run(1)
    works = scene.store.once

    async def away(_: object) -> None:
        raise HistoryError("no disk")

    monkeypatch.setattr(scene.store, "once", away)
    for _ in range(3):
        await scene.findings.look()
    assert caplog.text.count("findings are not written: no disk") == 1
    monkeypatch.setattr(scene.store, "once", works)
    await scene.findings.look()
    assert await scene.found() == {"job0": 0.1}
