"""Which pods of a controller do not exist since the API server refuses them, and its words."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from alnair.kube.timestamps import timestamp
from alnair.model.plurals import counted

#: Of ReplicaSets and Deployments: their last attempt to make or delete a pod failed.
_REFUSED: Final = ("ReplicaFailure", "FailedCreate")
_REPLICATED: Final = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")


class CreationEvent(Struct, rename="camel"):
    """An event that says that a pod was not made."""

    involved_object: Any = None
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def at(self) -> float:
        """When it was said last, in seconds since the epoch."""
        return timestamp(self.last_timestamp or self.event_time or "")

    @property
    def name(self) -> str:
        """Name of what was to make the pod."""
        return str((self.involved_object or {}).get("name", ""))

    @property
    def uid(self) -> str:
        """Uid of what was to make the pod."""
        return str((self.involved_object or {}).get("uid", ""))


def wanted_pods(made: dict[str, Any]) -> int | None:
    """Return how many pods that have not ended a controller shall have now.

    Returns:
        None where nobody can tell: of kinds that say it otherwise, and of Jobs without a number of
        completions, which make no more pods once one has succeeded.
    """
    spec = made.get("spec") or {}
    if made.get("kind") in _REPLICATED:
        replicas = spec.get("replicas")
        return 1 if replicas is None else int(replicas)
    if made.get("kind") != "Job" or spec.get("suspend"):
        return None
    parallel, done = spec.get("parallelism"), (made.get("status") or {}).get("succeeded") or 0
    parallel = 1 if parallel is None else int(parallel)
    if spec.get("completions") is None:
        return None if done else parallel
    return max(min(parallel, int(spec["completions"]) - done), 0)


def missing(made: dict[str, Any], started: Sequence[float], events: Iterable[CreationEvent]) -> str:
    """Return a sentence that says how many pods are wanted, how many exist, and why not all.

    Args:
        made: The controller.
        started: When its pods that have not ended were made, in seconds since the epoch.
        events: All that say that a pod was not made, of its namespace.

    Returns:
        Empty where the API server refuses none: a StatefulSet, for one, waits with a pod until
        the one before is ready.
    """
    wanted = wanted_pods(made)
    if wanted is None:
        return ""
    why = _refusal(made)
    if not why and len(started) < wanted:
        own = [one for one in events if one.uid == made["metadata"]["uid"]]
        last = max(own, key=lambda one: one.at, default=None)
        # Who has made a pod since then is not refused any more.
        if last is not None and last.at >= max(started, default=0.0):
            why = last.message
    if not why:
        return ""
    is_there = "exists" if len(started) == 1 else "exist"
    return (
        f"{made['kind']} {made['metadata']['name']} wants {counted(wanted, 'pod')},"
        f" {len(started)} {is_there}, and the API server refuses to make another: {why}"
    )


def _refusal(made: dict[str, Any]) -> str:
    """Return why no more pods are made, as a condition has it; empty if none says so."""
    for one in (made.get("status") or {}).get("conditions") or ():
        if (one.get("type"), one.get("reason")) == _REFUSED and one.get("status") == "True":
            return str(one.get("message") or "")
    return ""
