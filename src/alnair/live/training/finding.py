"""Finds training jobs by the names that people write."""

from typing import Any, Final

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.objects import training_jobs as wires
from alnair.kube.resources import (
    ELASTIC_HOROVOD_JOBS,
    ELASTIC_TORCH_JOBS,
    HOROVOD_JOBS,
    Resource,
)
from alnair.model.near_names import near
from alnair.model.training_job import TrainingJob

RESOURCES: Final[dict[str, Resource[Any]]] = {
    "ElasticHorovodJob": ELASTIC_HOROVOD_JOBS.typed(wires.ElasticHorovodJobWire),
    "HorovodJob": HOROVOD_JOBS.typed(wires.HorovodJobWire),
    "ElasticTorchJob": ELASTIC_TORCH_JOBS.typed(wires.ElasticTorchJobWire),
}
_SHORT: Final = {"ehj": "ElasticHorovodJob", "hj": "HorovodJob", "etj": "ElasticTorchJob"}
#: What to do where the cluster does not know our kinds.
INSTALL: Final = (
    "the cluster knows no training jobs: install Alnair there, with 'helm install alnair"
    " charts/alnair --namespace alnair-system --create-namespace' or 'kubectl apply --server-side"
    " -f deploy/alnair.yaml', or start a local cluster with 'alnair up --scheduler'"
)


class JobError(Exception):
    """It cannot be done; says why and what to do."""


async def find(client: Client, namespace: str, wanted: str) -> TrainingJob:
    """Return the job that is meant.

    Args:
        client: An open client.
        namespace: Where.
        wanted: NAME or KIND/NAME; the kind in any case, or its short name.

    Raises:
        JobError: There is none, or there are several.
        KubeError: The cluster cannot be read.
    """
    kind, slash, name = wanted.rpartition("/")
    kinds = [_kind(kind)] if slash else [*RESOURCES]
    found = await at(client, namespace, name, kinds)
    if len(found) > 1:
        listed = " and ".join(f"{one.kind}/{one.name}" for one in found)
        raise JobError(f"{name} may be {listed}: name one of them")
    if found:
        return found[0]
    known = [one.name for one in await listed_jobs(client, namespace)]
    text = f"there is no training job {name} in namespace {namespace}"
    if alike := near(name, known):
        text += f": did you mean {', '.join(alike)}?"
    elif not known:
        text += ", nor any other: look in another one with -n, or 'alnair jobs -A'"
    raise JobError(text)


async def at(client: Client, namespace: str, name: str, kinds: list[str]) -> list[TrainingJob]:
    """Return the jobs of this name, of these kinds.

    Raises:
        JobError: The cluster does not know the kinds.
        KubeError: The cluster cannot be read.
    """
    found = []
    for kind in kinds:
        try:
            made = await client.get(RESOURCES[kind], name, namespace)
        except NotFound as error:
            is_installed(error)
            continue
        found.append(wires.project_training_job(made))
    return found


async def listed_jobs(client: Client, namespace: str | None) -> list[TrainingJob]:
    """Return all jobs of a namespace, or of all, by namespace and name.

    Raises:
        JobError: The cluster does not know them.
        KubeError: The cluster cannot be read.
    """
    found: list[TrainingJob] = []
    for resource in RESOURCES.values():
        try:
            listed = await client.list(resource, namespace)
        except NotFound as error:
            is_installed(error)
            raise
        found += [wires.project_training_job(one) for one in listed.items]
    return sorted(found, key=lambda one: (one.namespace, one.name, one.kind))


def is_installed(error: NotFound) -> None:
    """Tell an object that is not there from a kind that is not.

    Raises:
        JobError: The kind is not there.
    """
    # Of a path that nobody serves the answer is no Status: it gives no reason.
    if not error.reason:
        raise JobError(INSTALL)


def _kind(word: str) -> str:
    lowered = word.lower()
    for kind in RESOURCES:
        if lowered in (kind.lower(), f"{kind.lower()}s"):
            return kind
    if lowered in _SHORT:
        return _SHORT[lowered]
    listed = ", ".join(f"{kind} ({short})" for short, kind in _SHORT.items())
    raise JobError(f"{word} is no kind of training jobs: write one of {listed}")
