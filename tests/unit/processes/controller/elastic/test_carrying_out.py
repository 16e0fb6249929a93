"""What was applied of a job: not again while its news is on its way, at once when it has gone."""

from typing import Any

import msgspec
import pytest

from alnair.elastic.desired import Child
from alnair.kube.errors import AlreadyExists
from alnair.kube.objects.training_jobs import ElasticHorovodJobWire, project_training_job
from alnair.kube.timestamps import timestamp
from alnair.processes.controller.elastic import carrying_out
from alnair.processes.controller.elastic.carrying_out import (
    Applied,
    LeftBehindError,
    NameTakenError,
)
from kit import training_jobs as jobs

SERVICE = {"kind": "Service", "metadata": {"name": "s"}}
CHILD = Child("Service", "s")


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> Applied:
    """Of a service that was applied at 100 s."""
    at(monkeypatch, 100.0)
    made = Applied()
    made.note(SERVICE)
    return made


def at(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Have it this late."""
    monkeypatch.setattr(carrying_out.time, "monotonic", lambda: seconds)


@pytest.mark.parametrize(("seconds", "again"), [(101.5, False), (109.0, False), (110.0, True)])
def test_what_nobody_has_seen_yet_is_applied_again_only_after_a_while(
    applied: Applied, monkeypatch: pytest.MonkeyPatch, seconds: float, again: bool
) -> None:
    at(monkeypatch, seconds)
    applied.look([SERVICE], {CHILD})
    assert applied.differs(SERVICE) is again


def test_what_was_there_and_is_not_is_applied_at_once(applied: Applied) -> None:
    applied.look([SERVICE], set())
    assert not applied.differs(SERVICE)
    applied.look([SERVICE], {CHILD})
    assert applied.differs(SERVICE)
    # And then its news is waited for again.
    applied.note(SERVICE)
    applied.look([SERVICE], {CHILD})
    assert not applied.differs(SERVICE)


class FakeClient:
    """Of an API server where the workers of another job are in the way."""

    def __init__(self, owner: dict[str, str], created: str) -> None:
        self.deleted: list[tuple[str, str | None]] = []
        meta = {"uid": "set", "creationTimestamp": created, "ownerReferences": [owner]}
        self._found = msgspec.convert({"metadata": meta}, carrying_out._Owned)

    async def create(self, resource: Any, manifest: Any, namespace: str) -> None:
        raise AlreadyExists(409, "AlreadyExists", "it is there")

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        return self._found

    async def delete(self, resource: Any, name: str, namespace: str, **which: Any) -> None:
        self.deleted.append((name, which["uid"]))


FORMER = {"kind": "ElasticHorovodJob", "name": "a", "uid": "former"}
OTHER = {"kind": "Queue", "name": "a", "uid": "other"}


@pytest.mark.parametrize(
    ("owner", "created", "error", "deleted"),
    [
        (FORMER, "2026-11-24T10:00:00Z", LeftBehindError, [("w", "set")]),
        # Of one that has been made since: our job is the former one.
        (FORMER, "2026-11-24T10:00:02Z", NameTakenError, []),
        (OTHER, "2026-11-24T10:00:00Z", NameTakenError, []),
        ({**FORMER, "name": "b"}, "2026-11-24T10:00:00Z", NameTakenError, []),
    ],
)
async def test_workers_that_a_former_job_of_the_name_left_behind_are_deleted_and_no_others(
    owner: dict[str, str], created: str, error: type[Exception], deleted: list[tuple[str, str]]
) -> None:
    wire = msgspec.convert(jobs.elastic("a", 1, 2), ElasticHorovodJobWire)
    job = msgspec.structs.replace(
        project_training_job(wire), uid="new", created=timestamp("2026-11-24T10:00:01Z")
    )
    client: Any = FakeClient(owner, created)
    with pytest.raises(error):
        await carrying_out._create(client, job, {"kind": "StatefulSet", "metadata": {"name": "w"}})
    assert client.deleted == deleted
