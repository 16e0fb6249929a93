"""What there is of a training job's objects, as far as decisions go by it."""

from collections.abc import Sequence

import msgspec


class Worker(msgspec.Struct, frozen=True):
    """A worker's pod.

    Attributes:
        index: In the name of the pod, from 0.
        placed: It has a node.
        ready: Its processes can be started.
        leaving: It is being deleted.
        problem: Reason and words of why its container does not start; empty if it does.
        node: Where it is; empty if it has none.
        uid: Of the pod.
    """

    index: int
    placed: bool = False
    ready: bool = False
    leaving: bool = False
    problem: str = ""
    node: str = ""
    uid: str = ""


class Ending(msgspec.Struct, frozen=True):
    """How a batch Job has ended, and why, in a word and in words."""

    succeeded: bool
    reason: str = ""
    message: str = ""


class Launcher(msgspec.Struct, frozen=True):
    """The launcher's Job, and its pod.

    Attributes:
        running: Its pod runs.
        since: When its container began to run, seconds since the epoch; 0 if it does not.
        pod: Name of the pod; empty while there is none.
        hosts_seen: What the pod says of the hosts that its kubelet brought.
        ending: None while it goes on.
        problem: Why its container does not start; empty if it does.
        ended_well: How its last pod has ended; None while it has one, or before it had any.
    """

    running: bool = False
    since: float = 0.0
    pod: str = ""
    hosts_seen: str = ""
    ending: Ending | None = None
    problem: str = ""
    ended_well: bool | None = None


class Group(msgspec.Struct, frozen=True):
    """The PodGroup.

    Attributes:
        placed: All its members had a node at one time.
        refusal: The scheduler's words, if the group fits nowhere now.
        members: How many it says must be placed at first; None: as was wanted.
        least: How many it says are enough from then on, as its annotation has it.
    """

    placed: bool = False
    refusal: str = ""
    members: int | None = None
    least: str = ""


class Hosts(msgspec.Struct, frozen=True):
    """What the host discovery says, and since when, seconds since the epoch."""

    names: tuple[str, ...]
    since: float


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What there is.

    Attributes:
        size: Workers that the StatefulSet, or of torchrun the Job, makes; None if it is not there.
        workers: The pods that there are, without those whose containers have ended.
        completed: So many workers' pods have ended well, as their kubelets say; `done` is later.
        ending: Of torchrun's Job.
        done: So many of torchrun's workers have succeeded; the others will soon.
        launcher: None if it is not there.
        group: None if it is not there.
        hosts: None if the ConfigMap is not there.
        has_keys: The Secret is there.
        parts: Kind and name of each Service, ConfigMap and NetworkPolicy; None: nobody looked.
        complaint: Why pods are not made or do not start, by the last warning about them, with
            its role before it: `worker FailedCreate: no PriorityClass with name high was found`.
        no_room: Why no plan finds room for its least, in the scheduler's words.
        fits_nowhere: No node would do for a worker, however empty.
        avoids: Nodes that new workers keep away from.
        settled: Whoever makes the workers has read its latest version.
    """

    size: int | None = None
    workers: Sequence[Worker] = ()
    ending: Ending | None = None
    done: int = 0
    completed: int = 0
    launcher: Launcher | None = None
    group: Group | None = None
    hosts: Hosts | None = None
    has_keys: bool = False
    parts: frozenset[tuple[str, str]] | None = None
    complaint: str = ""
    no_room: str = ""
    fits_nowhere: bool = False
    avoids: tuple[str, ...] = ()
    settled: bool = True

    def ready(self, below: int) -> tuple[Worker, ...]:
        """Return the workers that are ready, of the first so many, in the order of their index."""
        found = [w for w in self.workers if w.ready and not w.leaving and w.index < below]
        return tuple(sorted(found, key=lambda worker: worker.index))

    @property
    def staying(self) -> tuple[Worker, ...]:
        """The workers that are not being deleted."""
        return tuple(worker for worker in self.workers if not worker.leaving)

    @property
    def placed(self) -> int:
        """Workers that have a node."""
        return sum(worker.placed for worker in self.staying)

    @property
    def problem(self) -> tuple[str, str]:
        """Whose containers do not start, `worker` or `launcher`, and why; empty if all do."""
        found = [("worker", worker.problem) for worker in self.staying if worker.problem]
        if self.launcher is not None and self.launcher.problem:
            found.append(("launcher", self.launcher.problem))
        if self.complaint and not found:
            role, _, words = self.complaint.partition(" ")
            found.append((role, words))
        return min(found, default=("", ""), key=lambda each: each[1])
