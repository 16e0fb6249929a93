"""Workers leave nodes while the job runs on: from every moment, whoever looks carries on."""

import msgspec

from alnair.elastic import horovod
from alnair.elastic.desired import Child, Desired, desired
from alnair.elastic.node_exclusion import away_from, patch
from alnair.elastic.observed import Group, Hosts, Launcher, Observed, Worker
from alnair.kube.objects.training_jobs import (
    ElasticHorovodJobWire,
    ElasticTorchJobWire,
    project_training_job,
)
from alnair.model.elastic_types import JobStatus, MigrationStatus
from alnair.model.training_job import TrainingJob
from kit import training_jobs as jobs

GRACE = 5
NOW = 1_800_000_000.0
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def horovod_job(least: int, most: int, leave: str = "a@1") -> TrainingJob:
    job = project_training_job(
        msgspec.convert(jobs.elastic("j", least, most), ElasticHorovodJobWire)
    )
    return msgspec.structs.replace(job, namespace="team", uid="u", leave=leave)


def torch_job(leave: str = "a@1") -> TrainingJob:
    job = project_training_job(msgspec.convert(jobs.torch("j", 1, 4), ElasticTorchJobWire))
    return msgspec.structs.replace(job, namespace="team", uid="u", leave=leave)


class Small:
    """A StatefulSet or Job of a job, its pods, and the training, played as Kubernetes would.

    Workers come up on node "a" while they may, else on "b"; each that is made is ready at once.
    """

    def __init__(self, job: TrainingJob, workers: int) -> None:
        self.job = job
        self.now = NOW
        self.serial = 0
        self.size: int | None = workers
        self.avoids: tuple[str, ...] = ()
        self.pods: dict[int, Worker] = {}
        self.hosts: Hosts | None = None
        self.fewest = workers
        self.lost_untold: list[int] = []
        self.make()
        if job.framework == "horovod":
            self.hosts = Hosts(horovod.host_names(job, self.seen(), workers), NOW - 100)

    def make(self) -> None:
        for index in range(self.size or 0):
            if index not in self.pods:
                self.serial += 1
                node = "b" if "a" in self.avoids else "a"
                uid = f"u{self.serial}"
                self.pods[index] = Worker(index, True, True, node=node, uid=uid)
        for index in [one for one in self.pods if one >= (self.size or 0)]:
            del self.pods[index]

    def seen(self) -> Observed:
        launcher = Launcher(running=True, pod="l") if self.job.framework == "horovod" else None
        return Observed(
            size=self.size,
            workers=list(self.pods.values()),
            launcher=launcher,
            group=Group(placed=True),
            hosts=self.hosts,
            has_keys=True,
            avoids=self.avoids,
        )

    def step(self, target: int) -> Desired:
        """One pass of an operator that knows nothing of the last one."""
        done = desired(self.job, self.seen(), target, self.now)
        told = [m for m in done.apply if m["kind"] == "ConfigMap"]
        if told:
            names = horovod.listed_hosts(told[0]["data"][horovod.SCRIPT])
            if self.hosts is None or names != self.hosts.names:
                self.hosts = Hosts(names, self.now)
            self.fewest = min(self.fewest, len(names))
        if done.retemplate:
            self.avoids = self.job.leaves
        for name, uid in done.evict:
            [gone] = [one for one in self.pods.values() if one.uid == uid]
            assert name.endswith(f"-{gone.index}")
            if any(name in host for host in self.hosts.names if self.hosts):
                self.lost_untold.append(gone.index)
            del self.pods[gone.index]
        ended = self.size is None
        if done.delete:
            self.size = None
            self.pods = {i: msgspec.structs.replace(p, leaving=True) for i, p in self.pods.items()}
        made = [m for m in done.create if m["metadata"]["name"].endswith("-workers")]
        if made:
            self.size = made[0]["spec"].get("replicas") or made[0]["spec"].get("completions")
            self.avoids = self.job.leaves
            self.make()
        elif ended:
            self.pods = {}
        elif done.resize:
            self.size = done.resize.size
        if self.size is not None:
            self.make()
        self.job = msgspec.structs.replace(self.job, status=done.status)
        self.now += 1.0
        return done

    def settle(self, target: int) -> None:
        before = None
        for _ in range(200):
            done = self.step(target)
            state = (self.pods.copy(), self.hosts, done.status.migration, self.avoids, self.size)
            if state == before and done.again is None:
                return
            before = state
        raise AssertionError(f"it does not come to rest: {before}")

    @property
    def nodes(self) -> list[str]:
        return [self.pods[index].node for index in sorted(self.pods)]

    @property
    def migration(self) -> MigrationStatus | None:
        return self.job.status.migration


def test_workers_leave_one_after_the_other_and_the_training_is_told_before() -> None:
    world = Small(horovod_job(1, 4), 3)
    world.settle(3)
    assert world.nodes == ["b", "b", "b"]
    assert world.migration == MigrationStatus(request="a@1", done=True, message="no worker is on a")
    assert world.fewest == 2
    assert world.lost_untold == []
    assert world.avoids == (), "what comes later may go there again"


def test_a_job_that_has_none_to_spare_has_one_more_meanwhile() -> None:
    world = Small(horovod_job(2, 3), 2)
    world.settle(2)
    assert world.nodes == ["b", "b"]
    assert world.fewest == 2
    assert world.size == 2
    assert world.lost_untold == []


def test_a_job_that_may_have_no_more_says_what_to_change_and_stays() -> None:
    world = Small(horovod_job(2, 2), 2)
    world.settle(2)
    assert world.nodes == ["a", "a"]
    assert world.migration is not None
    assert world.migration.message.endswith("raise maxReplicas")


def test_workers_of_torchrun_begin_anew_elsewhere_when_the_old_ones_are_gone() -> None:
    world = Small(torch_job(), 3)
    first = world.step(3)
    assert first.delete == (Child("Job", "elastictorchjob-j-workers"),)
    second = world.step(3)
    assert second.create == (), "the old ones hold the rendezvous"
    world.settle(3)
    assert world.nodes == ["b", "b", "b"]
    assert world.migration is not None
    assert world.migration.done


def test_a_request_is_carried_out_once_and_a_later_one_again() -> None:
    world = Small(horovod_job(1, 4), 2)
    world.settle(2)
    world.pods = {i: msgspec.structs.replace(p, node="a") for i, p in world.pods.items()}
    world.settle(2)
    assert world.nodes == ["a", "a"], "they may go there when it is over"
    world.job = msgspec.structs.replace(world.job, leave="a@2")
    world.settle(2)
    assert world.nodes == ["b", "b"]


def test_a_request_that_is_taken_back_leaves_the_job_as_it_was() -> None:
    world = Small(horovod_job(1, 4), 3)
    world.step(3)
    assert world.avoids == ("a",)
    world.job = msgspec.structs.replace(world.job, leave="")
    world.settle(3)
    assert world.nodes == ["a", "a", "a"]
    assert (world.avoids, world.migration) == ((), None)


def test_a_worker_that_the_training_does_not_know_goes_at_once() -> None:
    world = Small(horovod_job(1, 4), 3)
    world.step(3)
    world.pods[1] = msgspec.structs.replace(world.pods[1], ready=False)
    done = world.step(3)
    assert [name for name, _ in done.evict] == ["elastichorovodjob-j-workers-1"]


def test_no_second_worker_goes_before_the_first_is_back() -> None:
    world = Small(horovod_job(1, 4), 3)
    world.step(3)
    del world.pods[2]
    assert world.size is not None
    world.size, told = 3, desired(world.job, world.seen(), 3, world.now)
    assert told.evict == ()
    assert told.status.migration is not None
    assert told.status.migration.message == "waits for worker 2 to be ready elsewhere"


def test_a_suspended_job_remembers_what_is_over() -> None:
    world = Small(horovod_job(1, 4), 2)
    world.settle(2)
    run = msgspec.structs.replace(world.job.run, suspend=True)
    job = msgspec.structs.replace(world.job, run=run)
    assert desired(job, world.seen(), 2, NOW).status.migration == world.migration
    fixed = msgspec.structs.replace(job, elastic=None, status=JobStatus())
    assert fixed.leaves == ()


def test_a_users_affinity_stays_beside_what_keeps_pods_away() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["x"]}
    own = {
        "podAntiAffinity": {"p": 1},
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
    }
    made = away_from(["a", "b"], own)
    [term] = made["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [zone]
    assert [one["values"] for one in term["matchFields"]] == [["a"], ["b"]]
    assert made["podAntiAffinity"] == {"p": 1}
    back = patch((), own)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert back == {REQUIRED: own["nodeAffinity"][REQUIRED]}
    assert patch((), None)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"] == {
        REQUIRED: None
    }
