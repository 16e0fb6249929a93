"""Why a training job does not get on, told so that its user knows what to change.

Kubernetes tells it in words alone: of who makes pods, of kubelets, and of refusals. Which of a few
known kinds they are about is found here; the words themselves are always told, too.
"""

import re
from typing import Final

import msgspec

from alnair.model.elastic_types import PodOverlay

_WORKERS: Final = "spec.workersSpec"
_LAUNCHER: Final = "spec.launcherSpec"

#: The field of a pod's template that a refusal names: of the pod, its container or its metadata.
_OF_POD: Final = re.compile(
    r"\bspec\.template\.(?:spec\.(?:containers(?:\[0\])?\.)?|metadata\.)?([A-Za-z]+)"
)
_OVERLAY: Final = frozenset(field.encode_name for field in msgspec.structs.fields(PodOverlay))


class Trouble(msgspec.Struct, frozen=True):
    """What is wrong: a word in CamelCase, and words that name the field and what to do."""

    reason: str
    message: str


class _Known(msgspec.Struct, frozen=True):
    """A kind of trouble: words that all of its messages have, and what to do.

    Attributes:
        words: In small letters.
        reason: In CamelCase.
        fields: Of the pod's part of the spec where they begin with a dot.
        advice: What to do with them.
        restarts: Pods that are there already keep what they were made with.
    """

    words: tuple[str, ...]
    reason: str
    fields: str
    advice: str
    restarts: bool = False


_KNOWN: Final = (
    _Known(
        ("exceeded quota",),
        "QuotaExceeded",
        ".gpusPerWorker, .resources and the number of workers",
        "lower one of them, or have the ResourceQuota raised",
    ),
    _Known(
        ("failed quota", "must specify"),
        "ResourcesMissing",
        ".resources",
        "ask for what the ResourceQuota counts",
    ),
    _Known(
        (" usage per ",),
        "LimitRangeViolated",
        ".resources",
        "ask for what the LimitRange allows",
    ),
    _Known(
        ("service account", "not found"),
        "ServiceAccountMissing",
        ".serviceAccountName",
        "make the ServiceAccount, or name another",
    ),
    _Known(
        ("no priorityclass",),
        "PriorityClassMissing",
        "spec.priorityClassName",
        "make the PriorityClass, or name another",
    ),
    _Known(
        ("violates podsecurity",),
        "PodSecurityViolated",
        ".securityContext and .volumes",
        "change them to what the namespace allows",
    ),
    _Known(
        ("being terminated",),
        "NamespaceTerminating",
        "metadata.namespace",
        "make the job in another namespace",
    ),
    _Known(
        ("persistentvolumeclaim", "not found"),
        "VolumeClaimMissing",
        ".volumes",
        "make the PersistentVolumeClaim, or name another",
        restarts=True,
    ),
    _Known(
        ("configmap", "not found"),
        "ConfigMapMissing",
        ".volumes, .env and .envFrom",
        "make the ConfigMap, or name another",
        restarts=True,
    ),
    _Known(
        ("secret", "not found"),
        "SecretMissing",
        ".volumes, .env, .envFrom and .imagePullSecrets",
        "make the Secret, or name another",
        restarts=True,
    ),
    _Known(
        ("crashloopbackoff",),
        "CrashLoopBackOff",
        ".image",
        "see the pod's log: its server has ended, so the image may lack it",
        restarts=True,
    ),
    _Known(("invalidimagename",), "InvalidImageName", ".image", "correct it", restarts=True),
    _Known(
        ("errimageneverpull",),
        "ErrImageNeverPull",
        ".image and .imagePullPolicy",
        "correct them, or bring the image to the nodes",
        restarts=True,
    ),
    # A kubelet says one and then the other, again and again.
    _Known(
        ("errimagepull",),
        "ImagePullBackOff",
        ".image and .imagePullSecrets",
        "correct them, or make the image available",
        restarts=True,
    ),
    _Known(
        ("imagepullbackoff",),
        "ImagePullBackOff",
        ".image and .imagePullSecrets",
        "correct them, or make the image available",
        restarts=True,
    ),
)


def trouble(said: str, role: str) -> Trouble:
    """Return what is wrong with a job's pods.

    Args:
        said: Reason and words, as `FailedCreate: pods "a-0" is forbidden: exceeded quota`.
        role: `worker` or `launcher`: whose pods it is about.
    """
    reason, _, words = said.partition(": ")
    small = said.lower()
    for known in _KNOWN:
        if all(each in small for each in known.words):
            where = known.fields.replace(" .", f" {_part(role)}.")
            where = f"{_part(role)}{where}" if where.startswith(".") else where
            again = ", then suspend the job and resume it" if known.restarts else ""
            return Trouble(known.reason, f"{words or reason}: {where}: {known.advice}{again}")
    return Trouble(reason or "Unknown", words or reason)


def refused_pods(said: str, role: str) -> Trouble:
    """Return why the API server takes no such pods, with the field of the job that is about it.

    Args:
        said: Its words, which name fields of a pod's template.
        role: `worker` or `launcher`: whose pods they are.
    """
    found = _OF_POD.search(said)
    field = found[1] if found else ""
    if field == "priorityClassName":
        where = f"spec.{field}"
    else:
        where = f"{_part(role)}.{field}" if field in _OVERLAY else _part(role)
    return Trouble("Refused", f"{said}: {where}: correct it")


def _part(role: str) -> str:
    return _LAUNCHER if role == "launcher" else _WORKERS
