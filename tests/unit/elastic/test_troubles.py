"""What no API server can know beforehand: each ends in a state that names the field and the fix."""

from typing import Any

import msgspec
import pytest

from alnair.elastic.desired import desired
from alnair.elastic.job_status import news, refused
from alnair.elastic.observed import Ending, Group, Launcher, Observed, Worker
from alnair.elastic.troubles import Trouble, refused_pods, trouble
from alnair.kube.objects.training_jobs import (
    ElasticHorovodJobWire,
    ElasticTorchJobWire,
    HorovodJobWire,
    project_training_job,
)
from alnair.model.elastic_types import JobStatus
from alnair.model.training_job import TrainingJob
from kit import training_jobs as jobs

NOW = 1_800_000_000.0
TYPES: dict[str, Any] = {
    "ElasticHorovodJob": ElasticHorovodJobWire,
    "HorovodJob": HorovodJobWire,
    "ElasticTorchJob": ElasticTorchJobWire,
}
FORBIDDEN = (
    'FailedCreate: create Pod a-workers-0 in StatefulSet a-workers failed error: pods "a-0" '
)
MOUNT = 'FailedMount: MountVolume.SetUp failed for volume "data": '


def read(manifest: jobs.Manifest) -> TrainingJob:
    job = project_training_job(msgspec.convert(manifest, TYPES[manifest["kind"]]))
    return msgspec.structs.replace(job, namespace="team", uid="0a1b", generation=1)


def said(status: JobStatus, kind: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    return next((c.status, c.reason, c.message) for c in status.conditions or () if c.type == kind)


@pytest.mark.parametrize(
    ("words", "reason", "field"),
    [
        (
            f"{FORBIDDEN}: exceeded quota: none, requested: requests.nvidia.com/gpu=1",
            "QuotaExceeded",
            "spec.workersSpec.gpusPerWorker",
        ),
        (
            (f'{FORBIDDEN}: error looking up service account team/x: serviceaccount "x" not found'),
            "ServiceAccountMissing",
            "spec.workersSpec.serviceAccountName",
        ),
        (
            f"{FORBIDDEN}: no PriorityClass with name high was found",
            "PriorityClassMissing",
            "spec.priorityClassName",
        ),
        (
            f"{FORBIDDEN}: failed quota: none: must specify requests.cpu for: worker",
            "ResourcesMissing",
            "spec.workersSpec.resources: ask for what the ResourceQuota counts",
        ),
        (
            f"{FORBIDDEN}: maximum memory usage per Container is 1Gi, but limit is 2Gi",
            "LimitRangeViolated",
            "spec.workersSpec.resources: ask for what the LimitRange allows",
        ),
        (
            f'{FORBIDDEN}: violates PodSecurity "restricted:latest": runAsNonRoot',
            "PodSecurityViolated",
            "spec.workersSpec.securityContext",
        ),
        (
            (
                f"{FORBIDDEN}: unable to create new content in namespace team because it is"
                " being terminated"
            ),
            "NamespaceTerminating",
            "metadata.namespace",
        ),
        (f'{MOUNT}secret "data" not found', "SecretMissing", "spec.workersSpec.volumes"),
        (f'{MOUNT}configmap "data" not found', "ConfigMapMissing", "spec.workersSpec.volumes"),
        (
            'CreateContainerConfigError: secret "token" not found',
            "SecretMissing",
            "spec.workersSpec.env",
        ),
        (
            'FailedScheduling: persistentvolumeclaim "data" not found',
            "VolumeClaimMissing",
            "spec.workersSpec.volumes",
        ),
        ("ErrImagePull: no such host", "ImagePullBackOff", "spec.workersSpec.image"),
        (
            'ImagePullBackOff: Back-off pulling image "x"',
            "ImagePullBackOff",
            "spec.workersSpec.image",
        ),
        ("InvalidImageName: couldn't parse", "InvalidImageName", "spec.workersSpec.image"),
        ("ErrImageNeverPull: not present", "ErrImageNeverPull", "spec.workersSpec.imagePullPolicy"),
        ("CrashLoopBackOff: back-off 10s", "CrashLoopBackOff", "spec.workersSpec.image"),
    ],
)
def test_each_known_trouble_names_the_field_and_keeps_the_words(
    words: str, reason: str, field: str
) -> None:
    found = trouble(words, "worker")
    assert found.reason == reason
    assert field in found.message
    assert words.partition(": ")[2] in found.message
    launcher = trouble(words, "launcher")
    assert "spec.workersSpec" not in launcher.message


def test_what_nobody_knows_is_told_as_it_is() -> None:
    found = trouble("FailedCreatePodSandBox: no network", "worker")
    assert (found.reason, found.message) == ("FailedCreatePodSandBox", "no network")


def test_pods_that_are_not_made_are_told_with_who_refuses_them() -> None:
    quota = f"worker {FORBIDDEN}: exceeded quota: none"
    here = Observed(size=2, workers=[Worker(0, placed=True)], complaint=quota)
    status = desired(read(jobs.elastic(least=2)), here, 2, NOW).status
    state, reason, message = said(status, "Scheduled")
    assert (state, reason) == ("False", "QuotaExceeded")
    assert "exceeded quota: none" in message
    # The launcher's trouble is not the workers'.
    account = 'launcher FailedCreate: error looking up service account team/x: "x" not found'
    here = Observed(size=1, workers=[], launcher=Launcher(), complaint=account)
    status = desired(read(jobs.elastic()), here, 1, NOW).status
    assert said(status, "Scheduled")[1] == "NoPods"
    assert said(status, "Running")[1] == "ServiceAccountMissing"
    assert "spec.launcherSpec.serviceAccountName" in said(status, "Running")[2]


def test_a_volume_that_is_not_there_is_told_where_the_pod_starts() -> None:
    missing = f'worker {MOUNT}secret "data" not found'
    stuck = [Worker(0, placed=True)]
    here = Observed(size=1, workers=stuck, group=Group(placed=True), complaint=missing)
    status = desired(read(jobs.torch()), here, 1, NOW).status
    assert said(status, "Scheduled")[0] == "True"
    assert said(status, "Running")[:2] == ("False", "SecretMissing")


def test_the_kubelets_two_words_for_an_image_are_one_state() -> None:
    job = read(jobs.elastic())

    def seen(problem: str) -> JobStatus:
        stuck = [Worker(0, placed=True, problem=problem)]
        here = Observed(size=1, workers=stuck, group=Group(placed=True))
        return desired(job, here, 1, NOW).status

    one, two = seen("ErrImagePull: no such host"), seen("ImagePullBackOff: back-off")
    assert said(one, "Running")[1] == said(two, "Running")[1] == "ImagePullBackOff"
    assert [reason for reason, _, _ in news(one, two)] == []


def test_workers_that_fit_on_no_node_are_told_apart_from_those_that_wait() -> None:
    job = read(jobs.elastic(gpuTypes=["B300"]))
    words = "0/6 nodes are available: 6 node(s) have no GPU of an accepted model."
    waits = desired(job, Observed(no_room="quota"), None, NOW).status
    assert said(waits, "Scheduled")[1] == "NoRoom"
    never = desired(job, Observed(no_room=words, fits_nowhere=True), None, NOW).status
    state, reason, message = said(never, "Scheduled")
    assert (state, reason) == ("False", "FitsNowhere")
    assert f"{words.removesuffix('.')}: change spec.workersSpec.gpusPerWorker" in message
    assert news(waits, never) == [("FitsNowhere", message, True)]


def test_a_scheduler_that_nobody_knows_is_named_while_the_pods_wait() -> None:
    job = read(jobs.changed(jobs.torch(), "spec.schedulerName", "alnair-schedular"))
    here = Observed(size=1, workers=[Worker(0)])
    state, reason, message = said(desired(job, here, 1, NOW).status, "Scheduled")
    assert (state, reason) == ("False", "OtherScheduler")
    assert "spec.schedulerName" in message
    there = Observed(size=1, workers=[Worker(0, placed=True)])
    assert said(desired(job, there, 1, NOW).status, "Scheduled")[0] == "True"


@pytest.mark.parametrize("manifest", [jobs.elastic(), jobs.fixed(), jobs.torch()])
def test_a_training_that_failed_says_where_its_log_is(manifest: jobs.Manifest) -> None:
    job = read(manifest)
    ending = Ending(succeeded=False, reason="BackoffLimitExceeded", message="it failed twice")
    here = Observed(size=1, workers=[], ending=ending, launcher=Launcher(ending=ending))
    state, reason, message = said(desired(job, here, 1, NOW).status, "Failed")
    assert (state, reason) == ("True", "BackoffLimitExceeded")
    assert "it failed twice; see kubectl logs job/" in message
    assert "spec.runPolicy.backoffLimit is 1" in message


def test_objects_that_are_refused_are_told_until_they_are_not() -> None:
    job = read(jobs.elastic())
    done = desired(job, Observed(), None, NOW)
    why = trouble("Refused: exceeded quota: none, requested: services=1", "worker")
    status = refused(JobStatus(), done.status, why, NOW)
    assert said(status, "Created")[:2] == ("False", "QuotaExceeded")
    assert status.phase == "Created"
    assert [reason for reason, _, _ in news(JobStatus(), status)] == ["QuotaExceeded"]
    same = refused(status, done.status, why, NOW + 60)
    assert same == status
    assert news(status, same) == []


@pytest.mark.parametrize(
    ("words", "role", "field"),
    [
        (
            "x: spec.template.spec.volumes[2].secret.secretName: Required value",
            "worker",
            ".volumes",
        ),
        (
            'strict decoding error: unknown field "spec.template.spec.affinity.nodeAffinty"',
            "launcher",
            ".affinity",
        ),
        ("field EnvVar.spec.template.spec.containers.env.value of type string", "worker", ".env"),
        (
            'spec.template.spec.containers[0].resources.requests: Invalid value: "2"',
            "worker",
            ".resources",
        ),
        ('spec.template.labels: Invalid value: "a b"', "worker", ".labels"),
        ("spec.template.metadata.annotations: Invalid value", "launcher", ".annotations"),
        ("something else", "worker", ""),
    ],
)
def test_pods_that_are_refused_are_told_with_the_field_of_the_job(
    words: str, role: str, field: str
) -> None:
    said = refused_pods(words, role)
    part = {"worker": "spec.workersSpec", "launcher": "spec.launcherSpec"}[role]
    assert said == Trouble("Refused", f"{words}: {part}{field}: correct it")


def test_a_refused_priority_class_is_the_jobs_and_not_of_a_part() -> None:
    said = refused_pods("spec.template.spec.priorityClassName: Invalid value", "worker")
    assert said.message.endswith(": spec.priorityClassName: correct it")


def test_a_job_that_goes_up_says_what_keeps_a_worker_from_its_start() -> None:
    here = Observed(
        size=2,
        workers=[*workers(1), Worker(1, placed=True, problem="ErrImagePull: no such host")],
        launcher=Launcher(running=True, pod="l"),
        group=Group(placed=True),
    )
    status = desired(read(jobs.elastic()), here, 2, NOW).status
    assert said(status, "Scaling")[:2] == ("True", "ScalingUp")
    assert "no such host: spec.workersSpec.image and" in said(status, "Scaling")[2]


def workers(count: int) -> list[Worker]:
    """So many that are ready."""
    return [Worker(i, placed=True, ready=True) for i in range(count)]


def told(job: TrainingJob, *life: tuple[Observed, int | None]) -> list[str]:
    """Reasons of the events of a job to which this happens, each with the target then."""
    found = []
    for second, (observed, target) in enumerate(life):
        status = desired(job, observed, target, NOW + second).status
        found += [reason for reason, _, _ in news(job.status, status)]
        assert news(status, status) == []
        job = msgspec.structs.replace(job, status=status)
    return found


def test_the_life_of_a_job_is_told_by_few_events() -> None:
    job = read(jobs.elastic(least=2))
    at_work = Launcher(running=True, pod="p")
    ended = Launcher(ending=Ending(succeeded=True, reason="Completed"))
    coming = [Worker(i, placed=False, ready=False) for i in range(2)]
    placed = [Worker(i, placed=True, ready=False) for i in range(2)]
    start = [
        (Observed(), 2),
        (Observed(size=2, workers=coming), 2),
        (Observed(size=2, workers=placed), 2),
        (Observed(size=2, workers=workers(2)), 2),
        (Observed(size=2, workers=workers(2), launcher=at_work), 2),
    ]
    end = (Observed(size=2, workers=workers(2), launcher=ended), 2)
    # That it has room, or another size, whoever plans it tells.
    assert told(job, *start, end) == ["LauncherRuns", "Completed"]
    more = [
        (Observed(size=2, workers=workers(2), launcher=at_work), 3),
        (Observed(size=3, workers=workers(3), launcher=at_work), 3),
    ]
    assert told(job, *start, *more) == ["LauncherRuns"]
    lost = (Observed(size=2, workers=workers(1), launcher=at_work), 2)
    assert told(job, *start, lost, start[-1]) == ["LauncherRuns", "ScalingUp"]
    paused = msgspec.structs.replace(job, run=msgspec.structs.replace(job.run, suspend=True))
    assert told(paused, (Observed(), None)) == ["Suspended"]
