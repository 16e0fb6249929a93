"""What is decided of a job is done: what was done just before waits, and with it what needs it."""

from typing import Any

import msgspec
import pytest

from alnair.elastic.desired import Child, Desired, Resize
from alnair.elastic.troubles import Trouble
from alnair.kube.client import Listing
from alnair.kube.errors import AlreadyExists, ApiError, BadRequest, Invalid
from alnair.kube.objects.training_jobs import ElasticHorovodJobWire, project_training_job
from alnair.kube.objects.wire import ObjectMeta
from alnair.model.training_job import TrainingJob
from alnair.processes.controller.elastic import carrying_out
from alnair.processes.controller.elastic.applied import Applied
from alnair.processes.controller.elastic.carrying_out import (
    LeftBehindError,
    NameTakenError,
    PodsRefusedError,
    carry_out,
    refusal,
)
from kit import training_jobs as jobs


def read_job() -> TrainingJob:
    wire = msgspec.convert(jobs.elastic("a", 1, 2), ElasticHorovodJobWire)
    return msgspec.structs.replace(project_training_job(wire), uid="new")


class FakeClient:
    """Of an API server where the workers of another job are in the way.

    Args:
        owner: Of the workers.
        job: Uid of the job that has the name now; None: there is none.
    """

    def __init__(self, owner: dict[str, str], job: str | None) -> None:
        self.deleted: list[tuple[str, str | None]] = []
        meta = {"uid": "set", "ownerReferences": [owner]}
        self._found = msgspec.convert({"metadata": meta}, carrying_out._Owned)
        self._jobs = [job] if job else []

    async def create(self, resource: Any, manifest: Any, namespace: str, **options: bool) -> None:
        raise AlreadyExists(409, "AlreadyExists", "it is there")

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        return self._found

    async def list(self, resource: Any, namespace: str, *, field_selector: str) -> Listing[Any]:
        assert (resource.kind, field_selector) == ("ElasticHorovodJob", "metadata.name=a")
        found = [carrying_out._Owned(ObjectMeta(name="a", uid=uid)) for uid in self._jobs]
        return Listing(found, "1")

    async def delete(self, resource: Any, name: str, namespace: str, **which: Any) -> None:
        self.deleted.append((name, which["uid"]))


FORMER = {"kind": "ElasticHorovodJob", "name": "a", "uid": "former"}
OTHER = {"kind": "Queue", "name": "a", "uid": "other"}


@pytest.mark.parametrize(
    ("owner", "there", "error", "deleted"),
    [
        (FORMER, "new", LeftBehindError, [("w", "set")]),
        # Of one that has been made since, be it in the same second: our job is the former one.
        ({**FORMER, "uid": "newest"}, "newest", NameTakenError, []),
        (FORMER, None, NameTakenError, []),
        (OTHER, "new", NameTakenError, []),
        ({**FORMER, "name": "b"}, "new", NameTakenError, []),
    ],
)
async def test_workers_that_a_former_job_of_the_name_left_behind_are_deleted_and_no_others(
    owner: dict[str, str],
    there: str | None,
    error: type[Exception],
    deleted: list[tuple[str, str]],
) -> None:
    job = read_job()
    client: Any = FakeClient(owner, there)
    with pytest.raises(error):
        await carrying_out._create(client, job, {"kind": "StatefulSet", "metadata": {"name": "w"}})
    assert client.deleted == deleted


class Refusing:
    """Of an API server that takes nothing, and is told whether to be strict."""

    def __init__(self, error: ApiError) -> None:
        self.error, self.strict = error, False

    async def create(self, resource: Any, manifest: Any, namespace: str, **options: bool) -> None:
        self.strict = options["strict"]
        raise self.error


@pytest.mark.parametrize("error", [BadRequest, Invalid])
async def test_pods_that_are_refused_are_told_with_whose_they_are(error: type[ApiError]) -> None:
    said = 'unknown field "spec.template.spec.affinity.podAffinty"'
    client: Any = Refusing(error(400, "Bad", said))
    made: jobs.Manifest = {
        "kind": "Job",
        "metadata": {"name": "l", "labels": {"role": "launcher"}},
    }
    with pytest.raises(PodsRefusedError) as caught:
        await carrying_out._create(client, read_job(), made)
    assert client.strict, "what is misspelt in a pod is not left out in silence"
    why = refusal(caught.value)
    assert why == Trouble("Refused", f"{said}: spec.launcherSpec.affinity: correct it")


class Recorder:
    """Takes whatever is written, and remembers it."""

    def __init__(self) -> None:
        self.written: list[str] = []

    async def apply(self, resource: Any, manifest: Any, **options: Any) -> None:
        self.written.append(f"apply {resource.kind}")

    async def create(self, resource: Any, manifest: Any, namespace: str, **options: bool) -> None:
        self.written.append(f"{'try' if options['dry_run'] else 'create'} {resource.kind}")

    async def merge_patch(self, resource: Any, *args: Any) -> None:
        self.written.append(f"patch {resource.kind}")

    async def delete(self, resource: Any, *args: Any, **options: Any) -> None:
        self.written.append(f"delete {resource.kind}")


async def test_the_launcher_is_told_to_look_at_its_hosts_only_once_they_are_written() -> None:
    job = read_job()
    hosts: jobs.Manifest = {"kind": "ConfigMap", "metadata": {"name": "hosts"}, "data": {}}
    now, client = [100.0], Recorder()
    applied = Applied(clock=lambda: now[0])

    def telling(listed: str) -> Desired:
        return Desired(
            apply=({**hosts, "data": {"hosts": listed}},), tell=("pod", listed), status=job.status
        )

    def seen() -> list[str]:
        found, client.written = client.written, []
        return found

    fake: Any = client
    for listed in ("1", "2"):
        assert await carry_out(fake, job, telling(listed), applied) == {}
        assert seen() == ["apply ConfigMap", "patch Pod"]
        now[0] += 1.0
    assert await carry_out(fake, job, telling("3"), applied) == {}
    seen()
    now[0] += 0.25
    put_off = await carry_out(fake, job, telling("4"), applied)
    assert (put_off, seen()) == ({Child("ConfigMap", "hosts"): 0.75}, [])
    # Nor is it made before: it says which hosts it has found.
    made: jobs.Manifest = {"kind": "Job", "metadata": {"name": "l"}}
    new = msgspec.structs.replace(telling("4"), create=(made,), tell=None)
    put_off = await carry_out(fake, job, new, applied)
    late = {Child("ConfigMap", "hosts"): 0.75, Child("Job", "l"): 0.75}
    assert (put_off, seen()) == (late, [])
    now[0] += 0.75
    assert await carry_out(fake, job, telling("4"), applied) == {}
    assert seen() == ["apply ConfigMap", "patch Pod"]


async def test_a_launcher_is_tried_before_the_workers_that_would_wait_for_it() -> None:
    job, client = read_job(), Recorder()
    made: jobs.Manifest = {"kind": "StatefulSet", "metadata": {"name": "w"}}
    launcher: jobs.Manifest = {"kind": "Job", "metadata": {"name": "l"}}
    done = Desired(tried=(launcher,), create=(made,), status=job.status)
    fake: Any = client
    for _ in range(2):
        await carry_out(fake, job, done, Applied(clock=lambda: 100.0))
    assert client.written == ["try Job", "create StatefulSet"] * 2
    # Nor is it tried again and again while the news of the workers is on its way.
    applied = Applied(clock=lambda: 100.0)
    for _ in range(5):
        await carry_out(fake, job, done, applied)
    assert client.written[4:] == ["try Job", "create StatefulSet"]


async def test_what_was_deleted_or_made_just_before_is_not_again() -> None:
    job, client, now = read_job(), Recorder(), [100.0]
    applied = Applied(clock=lambda: now[0])
    made: jobs.Manifest = {"kind": "StatefulSet", "metadata": {"name": "w"}}
    done = Desired(
        delete=(Child("Job", "launcher"),),
        create=(made,),
        resize=Resize(Child("StatefulSet", "v"), 2),
        status=job.status,
    )
    fake: Any = client
    for _ in range(20):
        await carry_out(fake, job, done, applied)
        now[0] += 0.05
    assert client.written == ["delete Job", "create StatefulSet", "patch StatefulSet"]
