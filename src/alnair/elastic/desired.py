"""What a training job should consist of now, given what there is: one pass of its operator.

Level-triggered: every pass may be the first, and one that finds all as it should be changes
nothing. What must be remembered is read from what there is: since when the hosts are told from the
ConfigMap, whether the gang was placed from its PodGroup, the rest from the job's own status.

    Created ─▶ Scheduled ─▶ Running ⇄ Scaling ─▶ Succeeded | Failed
       ▲______________________│ suspend: all that holds something goes, and comes back on resume
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from alnair.elastic import horovod, migration, node_exclusion, supporting_objects, torch
from alnair.elastic.child_names import ChildNames, child_names
from alnair.elastic.job_status import Stage, next_status, seconds, stamp
from alnair.elastic.observed import Ending, Group, Observed
from alnair.elastic.pod_templates import Manifest
from alnair.model import names
from alnair.model.elastic_types import JobStatus, PodOverlay
from alnair.model.training_job import TrainingJob

#: Seconds that a launcher waits for the last of the workers once the least of them are ready:
#: each that comes later costs the training a pause.
LAST_WORKERS: Final = 10.0
#: So long Horovod's processes wait for one another at the start (Gloo's timeout), and at most so
#: many times the grace: who is taken from them then costs the launcher, for they have no ring yet
#: that could do without. A training that leaves its workers little grace has short steps.
STARTS: Final = 30.0
STARTS_OF_GRACE: Final = 6.0
#: Seconds in which the news of what was written arrives.
NEWS: Final = 1.0


class Child(msgspec.Struct, frozen=True):
    """One of a job's objects, by kind and name."""

    kind: str
    name: str


class Resize(msgspec.Struct, frozen=True):
    """The object that makes the workers, and how many it shall make."""

    child: Child
    size: int


class Retemplate(msgspec.Struct, frozen=True):
    """The StatefulSet whose next pods are to be others, and the merge patch by which they are."""

    name: str
    patch: Manifest


class Desired(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done, in this order; what is the case already is among it.

    Attributes:
        delete: Objects that shall not be there.
        keys: A Secret with new keys is needed before the pods.
        apply: Objects that shall be so.
        changed: Those of them that are otherwise than they shall be, whoever has changed them; for
            a moment that are also those that we have just applied.
        tried: Objects that could be made: of which it is asked before any of `create` is.
        create: Objects that shall be made if they are not there, and not be touched if they are:
            their pods would be restarted.
        resize: How many workers there shall be.
        tell: The launcher's pod, and what its annotation shall say, so that its kubelet brings the
            hosts at once.
        retemplate: Where workers that are made from now on may go.
        evict: Workers' pods that go, to come back elsewhere: name and uid.
        status: The job's.
        forget: The job itself is to be deleted.
        again: When to look again though nothing has changed, seconds since the epoch.
    """

    delete: tuple[Child, ...] = ()
    keys: bool = False
    apply: tuple[Manifest, ...] = ()
    changed: tuple[Child, ...] = ()
    tried: tuple[Manifest, ...] = ()
    create: tuple[Manifest, ...] = ()
    resize: Resize | None = None
    tell: tuple[str, str] | None = None
    retemplate: Retemplate | None = None
    evict: tuple[tuple[str, str], ...] = ()
    status: JobStatus
    forget: bool = False
    again: float | None = None


def desired(job: TrainingJob, observed: Observed, target: int | None, now: float) -> Desired:
    """Return what a job shall consist of.

    Args:
        job: Which; not one that is being deleted.
        observed: What there is of it.
        target: Workers that it shall have; None if there is no room for it yet.
        now: Seconds since the epoch.
    """
    children = child_names(job)
    if job.finished:
        return _ended(job, observed, children, now)
    if job.run.suspend:
        status = next_status(job, observed, Stage(suspended=True), now)
        return Desired(delete=_all_that_holds(job, observed, children), status=status)
    ending, again = _ending(job, observed, now)
    if ending is not None:
        status = next_status(job, observed, Stage(target=target, ending=ending), now)
        delete = _after_the_end(job, observed, children)
        return Desired(delete=delete, status=status, again=_forgotten_at(job, now))
    if job.elastic is None:
        target = job.most
    if observed.done and observed.size is not None:
        # A worker that came now would wait for others that have done their work.
        target = observed.size
    if target is None:
        status = next_status(job, observed, Stage(), now)
        return Desired(apply=(supporting_objects.service(job, children),), status=status)
    return _going_on(job, observed, children, target, now, again)


def _going_on(
    job: TrainingJob,
    observed: Observed,
    children: ChildNames,
    target: int,
    now: float,
    again: float | None,
) -> Desired:
    status = next_status(job, observed, Stage(target=target), now)
    move = migration.moves(job, observed, target, now)
    status = msgspec.structs.replace(status, migration=move.status)
    target = move.size
    size, shrinks_at = _size(job, observed, target, now)
    apply: list[Manifest] = [supporting_objects.service(job, children)]
    if job.isolated:
        apply.append(supporting_objects.network_policy(job, children))
    # The gang is declared before its first pod, or this would be placed without the others.
    marked = observed.group.least if observed.group is not None else ""
    # Who has done its work is no member any more: a PodGroup that is made anew would wait for it.
    members = max(1, target - observed.done)
    apply.append(supporting_objects.pod_group(job, children, members, marked))
    create: list[Manifest] = []
    tried: tuple[Manifest, ...] = ()
    tell = None
    starts_at = None
    if job.framework == "torch":
        workers = torch.workers(job, children, target)
    else:
        workers = horovod.workers(job, children, target)
        hosts = migration.hosts(job, observed, target, move.held)
        may, starts_at = _may_launch(job, observed, target, status, now)
        # The launcher alone reads the hosts: until it comes, what changes in them costs no write.
        if job.elastic is not None and (may or observed.launcher or observed.hosts):
            apply.append(_hosts(job, observed, children, hosts, now))
            tell = _tell(observed, hosts)
        if may and job.launcher is not None:
            told = said_of(hosts) if job.elastic is not None else ""
            create.append(horovod.launcher(job, job.launcher, children, told))
    if observed.size is None and not move.waits:
        create.insert(0, workers)
        if job.launcher is not None and observed.launcher is None and _is_unchecked(job.launcher):
            # Or its workers would hold GPUs for a launcher that never comes.
            tried = (horovod.launcher(job, job.launcher, children),)
    resize = retemplate = None
    if move.retemplate:
        patch = node_exclusion.patch(job.leaves, job.workers.affinity)
        retemplate = Retemplate(children.workers, patch)
    anew = move.anew or _is_left_alone(job, observed)
    if observed.size is not None and size != observed.size and not anew:
        resize = Resize(Child(workers["kind"], children.workers), size)
    changed = _changed(observed, apply)
    soon = now + NEWS if changed else None
    times = [at for at in (again, shrinks_at, starts_at, soon, move.again) if at is not None]
    return Desired(
        delete=(Child("Job", children.workers),) if anew else (),
        keys=job.framework == "horovod" and not observed.has_keys,
        apply=tuple(apply),
        changed=changed,
        tried=tried,
        create=tuple(create),
        resize=resize,
        tell=tell,
        retemplate=retemplate,
        evict=tuple((children.worker(one.index), one.uid) for one in move.evict),
        status=status,
        again=min(times, default=None),
    )


def _is_left_alone(job: TrainingJob, observed: Observed) -> bool:
    """Whether torchrun's first worker was lost when too many others had done their work.

    It would wait for as many as the training needs at least; so all begin anew, and go on from the
    checkpoint.
    """
    if job.framework != "torch" or not observed.done or observed.size is None:
        return False
    too_few = observed.size - observed.done < job.least
    return too_few and any(one.index == 0 and not one.ready for one in observed.staying)


def _is_unchecked(pod: PodOverlay) -> bool:
    """Whether a pod has fields in which the schema of its job takes anything."""
    parts = (pod.volumes, pod.env, pod.env_from, pod.affinity, pod.security_context, pod.labels)
    return any(part is not None for part in (*parts, pod.node_selector))


def _changed(observed: Observed, apply: Sequence[Manifest]) -> tuple[Child, ...]:
    """Return the objects that are not there, and the PodGroup unless it is as it shall be.

    By it the scheduler decides who stays.
    """
    found = []
    for manifest in apply:
        kind, meta = manifest["kind"], manifest["metadata"]
        if kind == "PodGroup":
            is_so = observed.group is not None and _is_as(observed.group, manifest)
        else:
            is_so = observed.parts is None or (kind, meta["name"]) in observed.parts
        if not is_so:
            found.append(Child(kind, meta["name"]))
    return tuple(found)


def _is_as(group: Group, manifest: Manifest) -> bool:
    """Whether the PodGroup is as it shall be; one for which all count needs no mark, and may."""
    members = manifest["spec"]["minMember"]
    said = manifest["metadata"].get("annotations", {}).get(names.ELASTIC_MIN)
    marks = (said,) if said is not None else ("", str(members))
    return group.members is None or (group.members == members and group.least in marks)


def _size(
    job: TrainingJob, observed: Observed, target: int, now: float
) -> tuple[int, float | None]:
    """Return how many workers there shall be, and when fewer will do.

    A training is told first to do without those that leave, and they go when it had its time; at
    its very start it cannot do without any.
    """
    there = observed.size
    if there is None or target >= there or job.framework == "torch" or observed.launcher is None:
        return target, None
    grace = job.elastic.scale_down_grace_seconds if job.elastic is not None else 0
    told, began = observed.hosts, observed.launcher.since
    ready = began + min(STARTS, STARTS_OF_GRACE * grace) if began else 0.0
    if told is None or told.names != horovod.host_names(job, observed, target):
        return there, max(now + grace, ready)
    until = max(told.since + grace, ready)
    return (there, until) if now < until else (target, None)


def _hosts(
    job: TrainingJob,
    observed: Observed,
    children: ChildNames,
    hosts: tuple[str, ...],
    now: float,
) -> Manifest:
    told = observed.hosts
    since = told.since if told is not None and told.names == hosts else now
    return supporting_objects.hosts(job, children, hosts, stamp(since))


def _tell(observed: Observed, hosts: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the annotation of the launcher's pod if it does not say which hosts there are."""
    launcher, said = observed.launcher, said_of(hosts)
    if launcher is None or not launcher.pod or launcher.hosts_seen == said:
        return None
    return launcher.pod, said


def said_of(hosts: Sequence[str]) -> str:
    """Return what the annotation of the launcher's pod says of these hosts."""
    digest = hashlib.blake2b("\n".join(hosts).encode(), digest_size=8).hexdigest()
    return f"{len(hosts)} hosts, {digest}"


def _may_launch(
    job: TrainingJob, observed: Observed, target: int, status: JobStatus, now: float
) -> tuple[bool, float | None]:
    """Return whether the launcher shall be there, and when it shall if it need not be yet."""
    if observed.launcher is not None:
        return False, None
    if job.in_gang:
        return True, None
    ready = len(observed.ready(target))
    if ready >= target:
        return True, None
    if job.elastic is None or ready < job.least or not status.start_time:
        return False, None
    until = seconds(status.start_time) + LAST_WORKERS
    return now >= until, until if now < until else None


def _ending(job: TrainingJob, observed: Observed, now: float) -> tuple[Ending | None, float | None]:
    """Return how the training has ended, None while it goes on, and when its time is over."""
    launcher = observed.launcher
    found = observed.ending if launcher is None else launcher.ending
    limit, started = job.run.active_deadline_seconds, job.status.start_time
    if found is not None or limit is None or not started:
        return found, None
    until = seconds(started) + limit
    if now < until:
        return None, until
    text = f"it ran for {limit} s, which is spec.runPolicy.activeDeadlineSeconds"
    return Ending(succeeded=False, reason="DeadlineExceeded", message=text), None


def _ended(job: TrainingJob, observed: Observed, children: ChildNames, now: float) -> Desired:
    status = next_status(job, observed, Stage(), now)
    at = _forgotten_at(job, now)
    return Desired(
        delete=_after_the_end(job, observed, children),
        status=status,
        forget=at is not None and now >= at,
        again=at,
    )


def _forgotten_at(job: TrainingJob, now: float) -> float | None:
    lasts = job.run.ttl_seconds_after_finished
    if lasts is None:
        return None
    ended = job.status.completion_time
    return (seconds(ended) if ended else now) + lasts


def _after_the_end(job: TrainingJob, observed: Observed, children: ChildNames) -> tuple[Child, ...]:
    """Return what goes when a job has ended: what would hold GPUs, and more if its user wants.

    Pods of a Job that succeeded hold nothing and have the training's log.
    """
    policy = job.run.clean_pod_policy
    if policy == "None":
        return ()
    everything = _all_that_holds(job, observed, children)
    if policy == "All":
        return everything
    launcher = Child("Job", children.launcher)
    over = observed.launcher is not None and observed.launcher.ending is not None
    torch_over = job.framework == "torch" and observed.ending is not None
    kept = {launcher} if over else set()
    if torch_over:
        kept.add(Child("Job", children.workers))
    return tuple(one for one in everything if one not in kept)


def _all_that_holds(
    job: TrainingJob, observed: Observed, children: ChildNames
) -> tuple[Child, ...]:
    """Return the objects that there are whose pods hold something, and the gang."""
    kind = "Job" if job.framework == "torch" else "StatefulSet"
    found = []
    if observed.launcher is not None:
        found.append(Child("Job", children.launcher))
    if observed.size is not None:
        found.append(Child(kind, children.workers))
    if observed.group is not None:
        found.append(Child("PodGroup", children.group))
    return tuple(found)
