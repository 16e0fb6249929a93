"""Horovod: workers wait with an ssh server, and a launcher starts the processes in them.

The launcher of an elastic job asks a script every second which hosts there are. The script is
written by the operator, so that the pod needs no rights in the cluster. Facts of Horovod 0.28.1.
"""

from collections.abc import Sequence
from typing import Final

from alnair.elastic.child_names import ChildNames, child_names
from alnair.elastic.observed import Observed
from alnair.elastic.pod_templates import (
    HOSTS_FOLDER,
    KEYS_FOLDER,
    Manifest,
    gpu_limits,
    hosts_volume,
    keys_volume,
    labels,
    pod_template,
    workers_metadata,
)
from alnair.model import names
from alnair.model.elastic_types import LauncherSpec
from alnair.model.training_job import TrainingJob

#: The original's.
PORT: Final = 12345
SCRIPT: Final = "discover_hosts.sh"
#: What pods call their network.
_INTERFACE: Final = "eth0"
#: Seconds between which a host that failed is tried again; Horovod's default is never.
_COOLDOWN: Final = ("2", "30")
#: Before a training's command: horovodrun reads its words, too, up to a `--`, and refuses what
#: several of its own options begin with, such as `--num`. It keeps the `--`, so `env` takes it.
_ALONE: Final = ("env", "--")
#: Seconds that an ssh server takes to end.
_GRACE: Final = 5
# Horovod tells its workers of other hosts once, in the moment when it sees them, and it is lost on
# workers that are just starting or changing. So a host without a place comes and goes: at each of
# its changes Horovod looks whether all others are in use, and tells nobody if they are. Its names
# repeat, as Horovod remembers each one; one that only left would keep the others from a sync.
_LOOK_AGAIN: Final = """\
now=$(date +%s 2>/dev/null || printf 0)
printf 'look-again-%s:0\\n' $((now / 5 % 12))
"""
#: Keys of the Secret.
PRIVATE, AUTHORIZED, HOST = "id", "authorized_keys", "host"

# The server's sessions do not have the container's variables: sshd gives them what it finds in the
# file, as far as a line can hold it. Only the job's own key opens it. Who is not root can serve
# its own user alone, and not ask PAM about it.
_WAIT: Final = f"""\
set -e
if [ "$(id -u)" = 0 ]; then mkdir -p /run/sshd; else set -- -o UsePAM=no; fi
mkdir -p ~/.ssh
chmod 700 ~/.ssh
env | grep '^[A-Za-z_][A-Za-z_0-9]*=' > ~/.ssh/environment
exec "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -p {PORT} -h {KEYS_FOLDER}/{HOST} \
-o AuthorizedKeysFile={KEYS_FOLDER}/{AUTHORIZED} -o StrictModes=no -o PasswordAuthentication=no \
-o PermitUserEnvironment=yes -o PidFile=none "$@"
"""


def host_names(job: TrainingJob, observed: Observed, size: int) -> tuple[str, ...]:
    """Return the hosts that the training may use: ready workers, of the first `size` ones."""
    children = child_names(job)
    return tuple(children.host(worker.index) for worker in observed.ready(size))


def discovery(job: TrainingJob, hosts: Sequence[str]) -> str:
    """Return the host discovery script: a line for each host, with its number of processes."""
    lines = (f"echo {host}:{job.slots}\n" for host in hosts)
    return "#!/bin/sh\n" + "".join(lines) + _LOOK_AGAIN


def listed_hosts(script: str) -> tuple[str, ...]:
    """Return the hosts that a script of `discovery` tells."""
    lines = (line for line in script.splitlines() if line.startswith("echo "))
    return tuple(line.removeprefix("echo ").rpartition(":")[0] for line in lines)


def worker_template(job: TrainingJob, children: ChildNames) -> Manifest:
    """Return the pod of a worker."""
    container: Manifest = {
        "command": ["/bin/sh", "-c", _WAIT],
        "ports": [{"name": "ssh", "containerPort": PORT}],
        "limits": gpu_limits(job),
        # A host that does not answer yet must not be told to the launcher. Once the server does,
        # its end is the container's: each further look would be two lines in its log.
        "startupProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1, "failureThreshold": 600},
    }
    return pod_template(
        job,
        children,
        "worker",
        job.workers,
        container,
        (keys_volume(children),),
        in_group=True,
        terminationGracePeriodSeconds=_GRACE,
    )


def workers(job: TrainingJob, children: ChildNames, size: int) -> Manifest:
    """Return the StatefulSet of the workers: the first workers stay when there are fewer."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": workers_metadata(job, children),
        "spec": {
            "replicas": size,
            "podManagementPolicy": "Parallel",
            "serviceName": children.service,
            "selector": {"matchLabels": labels(job, "worker")},
            "template": worker_template(job, children),
        },
    }


def command(job: TrainingJob, hosts: Sequence[str]) -> list[str]:
    """Return what the launcher runs, a word each: nothing of it goes through a shell here.

    Args:
        job: Which.
        hosts: Of a job of a fixed size, all its workers.
    """
    words = ["horovodrun", "--gloo", "--network-interface", _INTERFACE]
    words += ["-p", str(PORT), "-i", f"{KEYS_FOLDER}/{PRIVATE}"]
    if job.elastic is None:
        listed = ",".join(f"{host}:{job.slots}" for host in hosts)
        return [*words, "-np", str(job.least * job.slots), "-H", listed, *_ALONE, *job.command]
    least, most = str(job.least * job.slots), str(job.most * job.slots)
    words += ["-np", least, "--min-np", least, "--max-np", most]
    words += ["--host-discovery-script", f"{HOSTS_FOLDER}/{SCRIPT}"]
    return [*words, "--blacklist-cooldown-range", *_COOLDOWN, *_ALONE, *job.command]


def launcher(
    job: TrainingJob, spec: LauncherSpec, children: ChildNames, told: str = ""
) -> Manifest:
    """Return the launcher's Job: its end is the training's.

    Args:
        job: Whose.
        spec: Of its pod.
        children: Names of its objects.
        told: What its pod's annotation says of the hosts, which it finds at its start.
    """
    hosts = [children.host(index) for index in range(job.least)]
    volumes = [keys_volume(children)]
    if job.elastic is not None:
        volumes.append(hosts_volume(children))
    template = pod_template(
        job,
        children,
        "launcher",
        spec,
        {"command": command(job, hosts)},
        tuple(volumes),
        in_group=job.in_gang,
        restartPolicy="Never",
    )
    if told:
        template["metadata"].setdefault("annotations", {})[names.HOSTS_SEEN] = told
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": children.launcher, "labels": labels(job, "launcher")},
        "spec": {
            "backoffLimit": job.run.backoff_limit,
            # That its node is drained is no failure of the training.
            "podFailurePolicy": {"rules": [{"action": "Ignore", **DISRUPTED}]},
            "template": template,
        },
    }


DISRUPTED: Final = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
