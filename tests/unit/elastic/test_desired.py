"""What a training job consists of, and what its status says, in each state of things."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from alnair.elastic import horovod
from alnair.elastic.child_names import child_names
from alnair.elastic.desired import LAST_WORKERS, Child, Desired, Resize, desired
from alnair.elastic.job_status import waits_since
from alnair.elastic.observed import Ending, Group, Hosts, Launcher, Observed, Worker
from alnair.kube.objects.training_jobs import (
    ElasticHorovodJobWire,
    ElasticTorchJobWire,
    HorovodJobWire,
    project_training_job,
)
from alnair.model import names
from alnair.model.training_job import TrainingJob
from kit import training_jobs as jobs

GOLDEN = Path(__file__).parents[2] / "golden"
NOW = 1_800_000_000.0
TYPES: dict[str, Any] = {
    "ElasticHorovodJob": ElasticHorovodJobWire,
    "HorovodJob": HorovodJobWire,
    "ElasticTorchJob": ElasticTorchJobWire,
}


def read(manifest: jobs.Manifest) -> TrainingJob:
    job = project_training_job(msgspec.convert(manifest, TYPES[manifest["kind"]]))
    return msgspec.structs.replace(job, namespace="team", uid="0a1b", generation=1)


def later(job: TrainingJob, done: Desired) -> TrainingJob:
    """The job with the status that was written."""
    return msgspec.structs.replace(job, status=done.status)


def workers(ready: int, *, placed: int | None = None, total: int | None = None) -> list[Worker]:
    """The first so many are ready, so many have a node, and there are so many in all."""
    placed = ready if placed is None else placed
    count = max(ready, placed) if total is None else total
    return [Worker(i, placed=i < placed, ready=i < ready) for i in range(count)]


def kinds(found: tuple[dict[str, Any], ...]) -> list[str]:
    return [one["kind"] for one in found]


def true(done: Desired) -> dict[str, str]:
    """Reasons of the conditions that are true."""
    return {c.type: c.reason for c in done.status.conditions or () if c.status == "True"}


def reason(done: Desired, kind: str) -> str:
    return next(c.reason for c in done.status.conditions or () if c.type == kind)


HOSTS = tuple(f"elastichorovodjob-job-workers-{i}.elastichorovodjob-job" for i in range(8))


def running(size: int, hosts: int, since: float = NOW - 100) -> Observed:
    return Observed(
        size=size,
        workers=workers(size),
        launcher=Launcher(running=True, pod="launcher-x", hosts_seen=""),
        group=Group(placed=True),
        hosts=Hosts(HOSTS[:hosts], since),
        has_keys=True,
    )


# --- byte for byte --------------------------------------------------------------------------------

FULL = {
    "gpuSlice": {"memoryMiB": 4096, "computePercent": 50},
    "gpuTypes": ["NVIDIA-A100", "NVIDIA-H100"],
    "resources": {"requests": {"cpu": "500m"}},
    "env": [{"name": "A", "value": "1"}],
    "volumes": [{"name": "data", "emptyDir": {}}],
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    "tolerations": [{"operator": "Exists"}],
    "nodeSelector": {"zone": "a"},
}


@pytest.mark.parametrize(
    ("golden", "manifest", "target"),
    [
        ("training-job-elastic-horovod.yaml", jobs.elastic(most=3, **FULL), 2),
        ("training-job-horovod.yaml", jobs.fixed(gpusPerWorker=2), None),
        ("training-job-elastic-torch.yaml", jobs.torch(most=3), 2),
    ],
)
def test_all_objects_of_a_job_are_those_of_the_golden_file(
    golden: str, manifest: jobs.Manifest, target: int | None
) -> None:
    job = read(manifest)
    job = msgspec.structs.replace(job, isolated=True, priority_class="high")
    first = desired(job, Observed(), target, NOW)
    size = target or job.most
    names_ = child_names(job)
    hosts = tuple(names_.host(i) for i in range(size))
    told = Hosts(hosts, NOW)
    there = Observed(size=size, workers=workers(size), hosts=told, has_keys=True)
    second = desired(job, there, target, NOW)
    found = [*first.create[:1], *second.apply, *second.create]
    assert msgspec.yaml.encode(found).decode() == (GOLDEN / golden).read_text()


# --- what is made, and when -----------------------------------------------------------------------


def test_a_job_without_room_has_a_name_and_no_pods() -> None:
    done = desired(read(jobs.elastic()), Observed(), None, NOW)
    assert kinds(done.apply) == ["Service"]
    assert (done.create, done.delete) == ((), ())
    assert (done.status.phase, reason(done, "Scheduled")) == ("Created", "NoRoom")


def test_a_job_waits_for_room_until_it_has_workers_or_is_not_wanted() -> None:
    job = read(jobs.elastic())
    assert waits_since(job) is None, "nobody has looked at it yet"
    waiting = later(job, desired(job, Observed(), None, NOW))
    assert waits_since(waiting) == NOW
    assert waits_since(later(waiting, desired(waiting, Observed(), None, NOW + 60))) == NOW
    assert waits_since(later(waiting, desired(waiting, Observed(), 2, NOW))) is None
    paused = msgspec.structs.replace(waiting, run=msgspec.structs.replace(job.run, suspend=True))
    assert waits_since(paused) is None
    hopeless = Observed(no_room="no node has a GPU", fits_nowhere=True)
    assert waits_since(later(job, desired(job, hopeless, None, NOW))) is None


def test_the_gang_comes_before_its_pods_and_the_keys_are_asked_for() -> None:
    done = desired(read(jobs.elastic(least=2)), Observed(), 3, NOW)
    assert kinds(done.apply) == ["Service", "PodGroup"]
    assert kinds(done.create) == ["StatefulSet"]
    assert done.keys
    group = done.apply[1]
    assert group["spec"]["minMember"] == 3
    assert group["metadata"]["annotations"] == {names.ELASTIC_MIN: "2"}


def test_the_launcher_waits_for_all_workers_and_not_for_ever_for_the_last() -> None:
    job = read(jobs.elastic(least=2))
    waiting = Observed(size=3, workers=workers(2, placed=3), has_keys=True, group=Group())
    done = desired(job, waiting, 3, NOW)
    assert (done.create, done.again) == ((), NOW + LAST_WORKERS)
    assert kinds(desired(later(job, done), waiting, 3, NOW + LAST_WORKERS).create) == ["Job"]
    assert kinds(desired(job, Observed(size=3, workers=workers(3)), 3, NOW).create) == ["Job"]
    too_few = Observed(size=3, workers=workers(1, placed=3))
    assert desired(later(job, done), too_few, 3, NOW + 1000).create == ()


def test_a_launcher_with_fields_that_nobody_has_checked_is_tried_before_its_workers_are_made() -> (
    None
):
    odd = jobs.changed(jobs.fixed(), "spec.launcherSpec.affinity", {"podAffinty": {}})
    done = desired(read(odd), Observed(has_keys=True), None, NOW)
    assert [one["kind"] for one in (*done.tried, *done.create)] == ["Job", "StatefulSet"]
    assert desired(read(odd), running(2, 2), None, NOW).tried == ()
    assert desired(read(jobs.fixed()), Observed(has_keys=True), None, NOW).tried == ()


def test_a_fixed_job_waits_for_all_workers() -> None:
    job = read(jobs.fixed(replicas=3))
    some = Observed(size=3, workers=workers(2, placed=3))
    done = desired(job, some, None, NOW)
    assert desired(later(job, done), some, None, NOW + 1000).create == ()
    assert kinds(desired(job, Observed(size=3, workers=workers(3)), None, NOW).create) == ["Job"]


def test_hosts_are_written_once_before_the_launcher_and_it_need_not_be_told_of_them() -> None:
    job = read(jobs.elastic(least=2))
    for count in (1, 2):
        there = Observed(size=3, workers=workers(count, placed=3, total=3), has_keys=True)
        assert kinds(desired(job, there, 3, NOW).apply) == ["Service", "PodGroup"]
    done = desired(job, msgspec.structs.replace(there, workers=workers(3)), 3, NOW)
    assert kinds(done.apply) == ["Service", "PodGroup", "ConfigMap"]
    (launcher,) = done.create
    seen = launcher["spec"]["template"]["metadata"]["annotations"][names.HOSTS_SEEN]
    at_work = running(3, 3)
    pod = Launcher(running=True, pod="p", hosts_seen=seen)
    assert desired(job, msgspec.structs.replace(at_work, launcher=pod), 3, NOW).tell is None
    fewer = msgspec.structs.replace(at_work, launcher=pod, workers=workers(2, placed=3))
    assert desired(job, fewer, 3, NOW).tell is not None


def test_a_launcher_in_the_gang_is_there_from_the_begin() -> None:
    job = read(jobs.changed(jobs.elastic(), "spec.launcherSpec.inGang", True))
    done = desired(job, Observed(), 2, NOW)
    assert kinds(done.create) == ["StatefulSet", "Job"]
    assert done.apply[1]["spec"]["minMember"] == 3
    pod = done.create[1]["spec"]["template"]
    assert pod["metadata"]["labels"][names.POD_GROUP_LABEL] == "podgroup-ehjob-job"
    alone = desired(read(jobs.elastic()), Observed(size=2, workers=workers(2)), 2, NOW).create[0]
    assert names.POD_GROUP_LABEL not in alone["spec"]["template"]["metadata"]["labels"]


def test_nothing_is_shown_to_a_shell_that_the_user_wrote() -> None:
    job = read(
        jobs.changed(jobs.elastic(), "spec.launcherSpec.pythonCommand", ["python", "a b", "$(x)"])
    )
    words = horovod.command(job, ())
    assert words[0] == "horovodrun"
    assert words[-3:] == ["python", "a b", "$(x)"]


def test_a_job_at_rest_has_nothing_to_be_done() -> None:
    job = read(jobs.elastic())
    first = desired(job, running(2, 2), 2, NOW)
    assert first.tell is not None
    here = msgspec.structs.replace(
        running(2, 2), launcher=Launcher(running=True, pod="launcher-x", hosts_seen=first.tell[1])
    )
    job = later(job, desired(job, here, 2, NOW))
    done = desired(job, here, 2, NOW + 50)
    again = desired(later(job, done), here, 2, NOW + 100)
    assert (done.create, done.delete, done.resize, done.tell, done.keys) == (
        (),
        (),
        None,
        None,
        False,
    )
    assert (again.status, again.apply) == (done.status, done.apply)
    assert true(done) == {
        "Created": "JobRead",
        "Scheduled": "EnoughPlaced",
        "Running": "LauncherRuns",
    }


@pytest.mark.parametrize(
    ("least", "words"), [(1, "at least 1 worker "), (2, "at least 2 workers ")]
)
def test_one_worker_is_not_several(least: int, words: str) -> None:
    there = desired(read(jobs.torch("job", least, 4)), Observed(size=2, workers=workers(2)), 2, NOW)
    told = {one.type: one.message for one in there.status.conditions}
    assert told["Scheduled"].startswith(words)
    assert told["Running"].startswith(words)


# --- growing and shrinking ------------------------------------------------------------------------


def test_a_job_that_grows_gets_workers_at_once_and_tells_the_ready_ones() -> None:
    job = read(jobs.elastic(most=8))
    done = desired(job, running(2, 2), 4, NOW)
    assert done.resize == Resize(Child("StatefulSet", "elastichorovodjob-job-workers"), 4)
    assert true(done)["Scaling"] == "ScalingUp"
    more = msgspec.structs.replace(running(2, 2), size=4, workers=workers(3, placed=4))
    script = desired(job, more, 4, NOW).apply[2]["data"][horovod.SCRIPT]
    assert horovod.listed_hosts(script) == HOSTS[:3]
    # What else it says has no place for a process: it makes Horovod look again.
    others = [line for line in script.splitlines()[1:] if not line.startswith("echo ")]
    assert [line for line in others if "printf '" in line] == [others[-1]]
    assert "printf 'look-again-%s:0\\n'" in others[-1]


def test_workers_leave_after_the_training_was_told_and_had_its_grace() -> None:
    job = read(jobs.changed(jobs.elastic(most=8), "spec.elasticPolicy.scaleDownGraceSeconds", 20))
    told = desired(job, running(4, 4), 2, NOW)
    assert (told.resize, told.again) == (None, NOW + 20)
    assert horovod.listed_hosts(told.apply[2]["data"][horovod.SCRIPT]) == HOSTS[:2]
    waits = desired(job, running(4, 2, since=NOW - 19), 2, NOW)
    assert (waits.resize, waits.again) == (None, NOW + 1)
    over = desired(job, running(4, 2, since=NOW - 20), 2, NOW)
    assert over.resize == Resize(Child("StatefulSet", "elastichorovodjob-job-workers"), 2)
    assert true(over)["Scaling"] == "ScalingDown"


@pytest.mark.parametrize(("grace", "lasts"), [(0, 0), (1, 6), (5, 30), (20, 30)])
def test_no_worker_leaves_while_the_launcher_has_just_begun(grace: int, lasts: int) -> None:
    job = read(
        jobs.changed(jobs.elastic(most=8), "spec.elasticPolicy.scaleDownGraceSeconds", grace)
    )
    here = running(4, 2, since=NOW - 25)
    assert here.launcher is not None

    def begun(ago: float) -> Desired:
        launcher = msgspec.structs.replace(here.launcher, since=NOW - ago)
        return desired(job, msgspec.structs.replace(here, launcher=launcher), 2, NOW)

    assert begun(lasts).resize is not None
    if lasts:
        early = begun(lasts - 1)
        assert (early.resize, early.again) == (None, NOW + 1)


def test_what_has_not_begun_shrinks_at_once() -> None:
    waiting = Observed(size=4, workers=workers(0, total=4), group=Group(refusal="no GPUs"))
    done = desired(read(jobs.elastic()), waiting, 3, NOW)
    assert done.resize is not None
    assert reason(done, "Scheduled") == "Unschedulable"
    assert done.apply[1]["spec"]["minMember"] == 3


def test_a_host_that_is_lost_is_told_no_more_and_not_made_up_for_by_another_index() -> None:
    job = read(jobs.elastic())
    lost = [Worker(0, placed=True, ready=True), Worker(1), Worker(2, placed=True, ready=True)]
    here = msgspec.structs.replace(running(3, 3), workers=lost)
    done = desired(job, here, 3, NOW)
    assert horovod.listed_hosts(done.apply[2]["data"][horovod.SCRIPT]) == (HOSTS[0], HOSTS[2])
    assert done.delete == ()


def test_torchrun_changes_its_size_at_once() -> None:
    job = read(jobs.torch())
    here = Observed(size=4, workers=workers(4), group=Group(placed=True))
    assert desired(job, here, 2, NOW).resize == Resize(
        Child("Job", "elastictorchjob-job-workers"), 2
    )


# --- the end --------------------------------------------------------------------------------------

DONE = Ending(succeeded=True, reason="CompletionsReached")
BROKEN = Ending(succeeded=False, reason="BackoffLimitExceeded", message="it failed twice")
WORKERS = Child("StatefulSet", "elastichorovodjob-job-workers")
LAUNCHER = Child("Job", "elastichorovodjob-job-launcher")
GROUP = Child("PodGroup", "podgroup-ehjob-job")


@pytest.mark.parametrize(
    ("policy", "gone"),
    [("Running", (WORKERS, GROUP)), ("All", (LAUNCHER, WORKERS, GROUP)), ("None", ())],
)
@pytest.mark.parametrize(("ending", "phase"), [(DONE, "Succeeded"), (BROKEN, "Failed")])
def test_gpus_are_given_back_at_the_end_and_the_log_stays(
    policy: str, gone: tuple[Child, ...], ending: Ending, phase: str
) -> None:
    job = read(jobs.changed(jobs.elastic(), "spec.runPolicy.cleanPodPolicy", policy))
    job = later(job, desired(job, running(2, 2), 2, NOW))
    here = msgspec.structs.replace(running(2, 2), launcher=Launcher(ending=ending))
    done = desired(job, here, 2, NOW + 9)
    assert (done.delete, done.create, done.resize) == (gone, (), None)
    assert (done.status.phase, reason(done, phase)) == (phase, ending.reason)
    ended = later(job, done)
    assert ended.finished == phase
    again = desired(ended, here, 2, NOW + 60)
    assert again.delete == gone
    assert again.status.completion_time == done.status.completion_time
    assert desired(ended, Observed(), 2, NOW + 60).delete == ()


def test_torchruns_pods_stay_for_their_logs() -> None:
    job = read(jobs.torch())
    here = Observed(size=2, workers=workers(2), ending=DONE, group=Group(placed=True))
    done = desired(job, here, 2, NOW)
    assert done.delete == (Child("PodGroup", "podgroup-etjob-job"),)
    assert done.status.phase == "Succeeded"
    message = next(one.message for one in done.status.conditions if one.type == "Succeeded")
    assert message == "the first worker has ended well, and with it the training"


def test_a_job_fails_when_its_time_is_over() -> None:
    job = read(jobs.changed(jobs.elastic(), "spec.runPolicy.activeDeadlineSeconds", 100))
    job = later(job, desired(job, running(2, 2), 2, NOW))
    assert desired(job, running(2, 2), 2, NOW + 99).again == NOW + 100
    done = desired(job, running(2, 2), 2, NOW + 100)
    assert (done.status.phase, reason(done, "Failed")) == ("Failed", "DeadlineExceeded")
    assert done.delete == (LAUNCHER, WORKERS, GROUP)


def test_a_job_is_forgotten_when_its_user_said() -> None:
    job = read(jobs.changed(jobs.elastic(), "spec.runPolicy.ttlSecondsAfterFinished", 60))
    here = msgspec.structs.replace(running(2, 2), launcher=Launcher(ending=DONE))
    done = desired(job, here, 2, NOW)
    assert (done.forget, done.again) == (False, NOW + 60)
    assert desired(later(job, done), here, 2, NOW + 60).forget


def test_a_suspended_job_holds_nothing_and_begins_anew() -> None:
    job = read(jobs.elastic())
    job = later(job, desired(job, running(2, 2), 2, NOW))
    paused = msgspec.structs.replace(job, run=msgspec.structs.replace(job.run, suspend=True))
    done = desired(paused, running(2, 2), 2, NOW)
    assert done.delete == (LAUNCHER, WORKERS, GROUP)
    assert reason(done, "Suspended") == "Suspending"
    over = desired(later(paused, done), Observed(), 2, NOW + 5)
    assert (over.status.phase, over.status.target_replicas, over.delete) == ("Suspended", 0, ())
    resumed = msgspec.structs.replace(later(paused, over), run=job.run)
    anew = desired(resumed, Observed(has_keys=True), 3, NOW + 9)
    assert kinds(anew.create) == ["StatefulSet"]
    assert (anew.status.start_time, true(anew)) == (None, {"Created": "JobRead"})


def test_why_a_container_does_not_start_is_told() -> None:
    stuck = [Worker(0, placed=True, problem="ImagePullBackOff: no such image")]
    here = Observed(size=1, workers=stuck, group=Group(placed=True))
    done = desired(read(jobs.elastic()), here, 1, NOW)
    [said] = [c for c in done.status.conditions or () if c.type == "Running"]
    assert (said.status, said.reason) == ("False", "ImagePullBackOff")
    assert said.message.startswith("no such image: spec.workersSpec.image and ")


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    job = read(jobs.elastic())
    first = desired(job, Observed(), None, NOW)
    second = desired(later(job, first), Observed(), None, NOW + 60)
    assert second.status == first.status


def test_long_names_stay_apart_and_fit() -> None:
    one, two = (read(jobs.elastic("a" * 60 + end)) for end in "bc")
    found = {*msgspec.structs.astuple(child_names(one)), *msgspec.structs.astuple(child_names(two))}
    assert len(found) == 14
    assert max(len(name) for name in found if "-keys" not in name) <= 52


def test_a_users_shared_memory_takes_the_place_of_ours() -> None:
    own = {
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    [made] = desired(read(jobs.torch(**own)), Observed(), 1, NOW).create
    [container] = made["spec"]["template"]["spec"]["containers"]
    assert [m["mountPath"] for m in container["volumeMounts"]].count("/dev/shm") == 1


def test_what_others_have_changed_or_taken_away_is_told() -> None:
    job = read(jobs.elastic(least=2))
    parts = frozenset(
        (m["kind"], m["metadata"]["name"]) for m in desired(job, running(3, 3), 3, NOW).apply
    )
    right = msgspec.structs.replace(
        running(3, 3), group=Group(placed=True, members=3, least="2"), parts=parts
    )
    assert desired(job, right, 3, NOW).changed == ()
    edited = msgspec.structs.replace(right, group=Group(placed=True, members=9, least="2"))
    done = desired(job, edited, 3, NOW)
    assert (done.changed, done.again) == ((GROUP,), NOW + 1)
    unmarked = msgspec.structs.replace(right, group=Group(placed=True, members=3))
    assert desired(job, unmarked, 3, NOW).changed == (GROUP,)
    service = ("Service", "elastichorovodjob-job")
    without = msgspec.structs.replace(right, parts=parts - {service})
    assert desired(job, without, 3, NOW).changed == (Child(*service),)


def marks(done: Desired) -> list[str]:
    """What the PodGroup shall say of how many members are enough."""
    groups = [one for one in done.apply if one["kind"] == "PodGroup"]
    return [one["metadata"].get("annotations", {}).get(names.ELASTIC_MIN, "") for one in groups]


def test_a_gang_that_cannot_shrink_has_the_mark_of_somebody_else_taken_over_and_removed() -> None:
    job = read(jobs.fixed(replicas=3))
    parts = frozenset(
        (m["kind"], m["metadata"]["name"]) for m in desired(job, Observed(), 3, NOW).apply
    )
    group = desired(job, Observed(), 3, NOW).apply[1]["metadata"]["name"]

    def said(least: str) -> Desired:
        marked = Group(placed=True, members=3, least=least)
        here = Observed(size=3, workers=workers(3), group=marked, has_keys=True, parts=parts)
        return desired(job, here, 3, NOW)

    assert (marks(said("")), said("").changed) == ([""], ())
    assert (marks(said("1")), said("1").changed) == (["3"], (Child("PodGroup", group),))
    # Then it is ours, so that leaving it out removes it; were it not, it would do no harm.
    assert (marks(said("3")), said("3").changed) == ([""], ())


def test_torchrun_is_not_resized_once_some_of_it_has_ended_well() -> None:
    here = Observed(size=2, workers=workers(1), group=Group(placed=True), done=1)
    done = desired(read(jobs.torch()), here, 4, NOW)
    assert (done.resize, done.status.target_replicas) == (None, 2)


def test_torchrun_begins_anew_where_the_first_worker_was_lost_and_too_many_have_ended() -> None:
    job = read(jobs.torch(least=2))
    there = Observed(size=2, workers=workers(1), group=Group(placed=True), done=1)
    assert desired(job, there, 2, NOW).delete == ()
    lost = msgspec.structs.replace(there, workers=[Worker(0, placed=True)])
    assert desired(job, lost, 2, NOW).delete == (Child("Job", "elastictorchjob-job-workers"),)
    # One that can go on alone does so, and others have nothing to wait for.
    assert desired(read(jobs.torch()), lost, 2, NOW).delete == ()
    assert desired(job, msgspec.structs.replace(lost, workers=[Worker(1)]), 2, NOW).delete == ()
    assert desired(job, msgspec.structs.replace(lost, done=0), 2, NOW).delete == ()


def test_a_gang_that_is_made_anew_does_not_wait_for_who_has_done_its_work() -> None:
    lost = Observed(size=3, workers=[Worker(0)], done=2)
    done = desired(read(jobs.torch(least=2)), lost, 3, NOW)
    [group] = [one for one in done.apply if one["kind"] == "PodGroup"]
    assert group["spec"]["minMember"] == 1
    assert group["metadata"]["annotations"][names.ELASTIC_MIN] == "1"


def test_a_pod_is_never_counted_as_another_jobs_for_a_label_of_its_user() -> None:
    job = read(jobs.torch(labels={"ElasticHorovodJob": "other", "team": "a"}))
    [made] = desired(job, Observed(), 1, NOW).create
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert labels.keys() >= {"ElasticTorchJob", "team"}
    assert "ElasticHorovodJob" not in labels
