"""Whose a pod is: the controllers above it, the run that it is a part of, and the run's series."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

#: Controllers above a pod that are looked at: five are CronJob, TrainJob, JobSet, Job and one more.
MOST_STEPS: Final = 5
#: Kinds that start a run again and again, by group and kind.
RECURRING: Final = frozenset(
    (
        ("batch", "CronJob"),
        ("batch.volcano.sh", "CronJob"),
        ("argoproj.io", "CronWorkflow"),
        ("kubeflow.org", "ScheduledWorkflow"),
        ("ray.io", "RayCronJob"),
        ("sparkoperator.k8s.io", "ScheduledSparkApplication"),
    )
)
#: A static pod is its node's; that is no workload.
_NONE: Final = (("", "Node"),)
#: What Kubernetes appends to a generateName.
_RANDOM: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
_NUMBER: Final = re.compile(r"\d+")


class OwnerRef(msgspec.Struct, frozen=True):
    """An object that may own others; `namespace` is empty for one of the whole cluster."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def api_version(self) -> str:
        """As a manifest has it."""
        return f"{self.group}/{self.version}" if self.group else self.version


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """An object above a pod, or the pod itself.

    Attributes:
        controller: What controls it.
        readable: Whether its metadata were read; if not, only `ref` is known.
    """

    ref: OwnerRef
    controller: OwnerRef | None = None
    generate_name: str = ""
    created: float = 0.0
    labels: dict[str, str] = {}
    readable: bool = True


def reference(api_version: str, kind: str, namespace: str, name: str, uid: str) -> OwnerRef | None:
    """Return the controller that an owner reference names; None where it is no workload."""
    group, _, version = api_version.rpartition("/")
    if (group, kind) in _NONE:
        return None
    return OwnerRef(group, version, kind, namespace, name, uid)


def above(chain: Sequence[Owner]) -> OwnerRef | None:
    """Return what to look at next; None at the top, in a circle, or after too many steps.

    Args:
        chain: A pod, and what was found above it, from below.
    """
    found = chain[-1].controller
    if found is None or len(chain) > MOST_STEPS:
        return None
    return None if any(one.ref.uid == found.uid for one in chain) else found


def run_of(chain: Sequence[Owner]) -> Owner:
    """Return the topmost of a pod's owners that does not recur; the pod itself if it has none."""
    runs = [one for one in chain if (one.ref.group, one.ref.kind) not in RECURRING]
    return runs[-1]


def series_of(chain: Sequence[Owner]) -> str:
    """Return what is the same for all runs of one work, in its namespace.

    That is what starts it again and again or, without that, the name that it was generated from,
    or its name without numbers and without what Kubernetes appends.
    """
    for one in chain:
        if (one.ref.group, one.ref.kind) in RECURRING:
            return f"{one.ref.kind}/{one.ref.name}"
    run = run_of(chain)
    if run.generate_name:
        return f"{run.ref.kind}/{run.generate_name}"
    return f"{run.ref.kind}/{_NUMBER.sub('#', _RANDOM.sub('-#', run.ref.name))}"
