"""What the pods of a training job need besides: names of hosts, a gang, keys, a closed door."""

from collections.abc import Sequence

import msgspec

from alnair.elastic import horovod
from alnair.elastic.child_names import ChildNames
from alnair.elastic.pod_templates import Manifest, labels
from alnair.model import names
from alnair.model.training_job import TrainingJob


class Keys(msgspec.Struct, frozen=True):
    """Keys that were drawn for one job, as ssh writes them: private ones and one public one."""

    private: str
    public: str
    host: str


def service(job: TrainingJob, children: ChildNames) -> Manifest:
    """Return the headless Service that gives each worker a name."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": children.service, "labels": _part(job)},
        "spec": {
            "clusterIP": "None",
            # The name must be there before the first who asks for it.
            "publishNotReadyAddresses": True,
            "selector": labels(job, "worker"),
        },
    }


def pod_group(job: TrainingJob, children: ChildNames, size: int, marked: str = "") -> Manifest:
    """Return the PodGroup: all must be placed at first, and the least once they were.

    Args:
        job: Whose.
        children: Names of its objects.
        size: Workers that it has, and that have not succeeded yet.
        marked: How many members the PodGroup says are enough.
    """
    extra = int(job.in_gang)
    needed = str(size + extra)
    metadata: Manifest = {"name": children.group, "labels": {job.kind: job.name}}
    if job.elastic is not None:
        metadata["annotations"] = {names.ELASTIC_MIN: str(min(job.least, size) + extra)}
    elif marked not in ("", needed):
        # Somebody else's mark on a gang that cannot shrink. Fields of others do not go by being
        # left out: we make it ours, with a value that does no harm, and leave it out the next time.
        metadata["annotations"] = {names.ELASTIC_MIN: needed}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": size + extra},
    }


def hosts(job: TrainingJob, children: ChildNames, listed: Sequence[str], since: str) -> Manifest:
    """Return the ConfigMap with the host discovery, and since when it says that, RFC 3339."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": children.hosts,
            "labels": _part(job),
            "annotations": {names.HOSTS_SINCE: since},
        },
        "data": {horovod.SCRIPT: horovod.discovery(job, listed)},
    }


def secret(job: TrainingJob, children: ChildNames, keys: Keys) -> Manifest:
    """Return the Secret with the job's own keys."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": children.keys, "labels": {job.kind: job.name}},
        "type": "Opaque",
        "stringData": {
            horovod.PRIVATE: keys.private,
            horovod.AUTHORIZED: keys.public,
            horovod.HOST: keys.host,
        },
    }


def network_policy(job: TrainingJob, children: ChildNames) -> Manifest:
    """Return the NetworkPolicy by which only the job's own pods connect to them."""
    own = {"matchLabels": {job.kind: job.name}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": children.network, "labels": _part(job)},
        "spec": {
            "podSelector": own,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": own}]}],
        },
    }


def _part(job: TrainingJob) -> dict[str, str]:
    """Return labels: whose it is, and by which the operator sees it go."""
    return {job.kind: job.name, names.JOB_PART: "yes"}
