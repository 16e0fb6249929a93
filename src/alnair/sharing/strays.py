"""Strays: processes on a GPU of which their pod was given nothing, and what follows.

As with slices, what looks wrong is a suspicion first, and a violation when it stays: who was given
what is known from elsewhere, and may be a moment old: a second, so it was asked for twice anew
before anybody is accused. From the first moment of a stray to the action it is at most 1 + 2 s.

What it cannot see: use by a process that the driver does not list.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from alnair.sharing.violations import EvictTenant, Policy, Process, ViolationRules, counts


class Owner(StrEnum):
    """Whose a process is that has no slice of the GPU it uses."""

    #: A pod's that holds the whole GPU, or a MIG device of it: it may.
    WHOLE = "whole"
    #: A pod's that holds nothing of it.
    POD = "pod"
    #: A pod's, and what that holds is not known.
    UNKNOWN = "unknown"
    #: No pod's, or the agent's own: a program of the node.
    HOST = "host"


class StrayPolicy(StrEnum):
    """What follows from a stray; each does what those before it do."""

    WARN = "warn"
    EVICT = "evict"


class StrayRules(msgspec.Struct, frozen=True):
    """When a suspicion arises, and when it is one no more; seconds.

    Attributes:
        confirmed: How long a suspicion must stay. Looks are a second apart: between two of their
            multiples, or now and then it would take a look more.
        interrupted: Two looks further apart say nothing of the time between.
    """

    confirmed: float = 1.5
    interrupted: float = 3.0


class StrayCase(msgspec.Struct, frozen=True):
    """What is held against one pod on one GPU of which it was given nothing.

    Attributes:
        since: Monotonic seconds of the first look at which it looked wrong.
        last: And of the last one.
        message: The sentence about it, once it is confirmed; "" before.
    """

    since: float
    last: float
    message: str = ""


class StrayFound(msgspec.Struct, frozen=True):
    """A pod uses a GPU of which it was given nothing: report it."""

    message: str


class StrayGone(msgspec.Struct, frozen=True):
    """It does not any more: report it."""


StrayAction = StrayFound | StrayGone | EvictTenant


def stray_policy(policy: Policy) -> StrayPolicy:
    """Return what follows from a stray where only the policy for slices is given.

    A stray has no limits page by which it could be throttled: then it is a warning.
    """
    return StrayPolicy.EVICT if policy is Policy.EVICT else StrayPolicy.WARN


def owner(pod: str, gpu: str, agent: str, whole: Mapping[str, frozenset[str]] | None) -> Owner:
    """Tell whose a process is that has no slice of a GPU.

    Args:
        pod: Uid of its pod, or "".
        gpu: UUID of the GPU that it uses.
        agent: Uid of the pod that the agent runs in, or "".
        whole: The whole GPUs that pods hold, by uid; None: that is not known.
    """
    if not pod or pod == agent:
        return Owner.HOST
    if whole is None:
        return Owner.UNKNOWN
    return Owner.WHOLE if gpu in whole.get(pod, ()) else Owner.POD


def judge_stray(
    before: StrayCase | None,
    now: float,
    processes: Iterable[Process],
    rules: StrayRules = StrayRules(),  # noqa: B008 (frozen)
) -> StrayCase | None:
    """Return what is held against a pod on a GPU after one more look; None: nothing.

    Args:
        before: After the look before.
        now: Monotonic seconds.
        processes: Those of the pod on the GPU, as the driver lists them.
        rules: When it is confirmed.
    """
    pids = [process.pid for process in processes if counts(process, ViolationRules())]
    if not pids:
        return None
    if before is not None and before.message:
        # Its sentence stays: one event, not one a second.
        return msgspec.structs.replace(before, last=now)
    is_new = before is None or now - before.last > rules.interrupted
    since = now if before is None or is_new else before.since
    shown = ", ".join(str(pid) for pid in pids[:5])
    said = (
        f"{len(pids)} process(es) use a GPU of which the pod was given nothing (host pid {shown})"
    )
    return StrayCase(since, now, said if now - since >= rules.confirmed else "")


def respond_to_stray(
    policy: StrayPolicy, before: StrayCase | None, after: StrayCase | None
) -> list[StrayAction]:
    """Return what follows from the difference."""
    old, new = (case.message if case is not None else "" for case in (before, after))
    if bool(old) == bool(new):
        return []
    if not new:
        return [StrayGone()]
    evict = [EvictTenant(new)] if policy is StrayPolicy.EVICT else []
    return [StrayFound(new), *evict]
