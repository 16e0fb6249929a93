"""GPU training pods as the API server sends them, for `kube_client.py`.

From a seeded source: jobs of eight workers, 7 environment variables, two managedFields entries,
about 5.9 kB of JSON each.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

SEED = 20261121
#: What the API server projects into each pod for its service account.
TOKEN = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {
        "configMap": {
            "name": "kube-root-ca.crt",
            "items": [{"key": "ca.crt", "path": "ca.crt"}],
        }
    },
    {
        "downwardAPI": {
            "items": [
                {
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }
            ]
        }
    },
]


def managed(manager: str, stamp: str, fields: dict[str, Any], sub: str = "") -> dict[str, Any]:
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": stamp,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return entry | ({"subresource": sub} if sub else {})


def owned(*names: str) -> dict[str, Any]:
    return {f"f:{name}": {} for name in names}


def make_job(source: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """The eight workers of one training job."""
    job = f"train-{source.getrandbits(40):010x}-{number}"
    gpus = source.choice([1, 1, 2, 4, 8])
    cpu, memory = gpus * source.choice([4, 8, 12]), gpus * source.choice([16, 32, 64])
    owner = f"{source.getrandbits(128):032x}"
    names = "MASTER_ADDR MASTER_PORT WORLD_SIZE NCCL_DEBUG NCCL_SOCKET_IFNAME OMP_NUM_THREADS RANK"
    for rank in range(8):
        values = [f"{job}-0.{job}", "29500", "8", "WARN", "eth0", str(cpu), str(rank)]
        env = [{"name": n, "value": v} for n, v in zip(names.split(), values, strict=True)]
        yield make_pod(source, job, rank, owner, env, {"gpu": gpus, "cpu": cpu, "memory": memory})


def make_pod(
    source: random.Random,
    job: str,
    rank: int,
    owner: str,
    env: list[dict[str, str]],
    size: dict[str, int],
) -> dict[str, Any]:
    stamp = f"2026-11-{source.randint(1, 20):02}T{source.randint(0, 23):02}:15:42Z"
    node = f"gpu-node-{source.randint(0, 4999):04}"
    labels = {
        "app.kubernetes.io/name": "trainer",
        "app.kubernetes.io/instance": job,
        "training.kubeflow.org/job-name": job,
        "training.kubeflow.org/replica-index": str(rank),
        "scheduling.x-k8s.io/pod-group": job,
        "team": source.choice(["vision", "speech", "ranking", "language"]),
    }
    amounts = {
        "cpu": str(size["cpu"]),
        "memory": f"{size['memory']}Gi",
        "nvidia.com/gpu": str(size["gpu"]),
    }
    mounts = [
        {"name": "data", "mountPath": "/data"},
        {"name": "shm", "mountPath": "/dev/shm"},
        {
            "name": "kube-api-access-x7k2p",
            "readOnly": True,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        },
    ]
    ready = [
        {"type": t, "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp}
        for t in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    ]
    ready.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp})
    env_fields = {
        f'k:{{"name":"{e["name"]}"}}': {".": {}, "f:name": {}, "f:value": {}} for e in env
    }
    container_fields = {
        'k:{"name":"trainer"}': {
            ".": {},
            **owned("command", "image", "imagePullPolicy", "name", "terminationMessagePath"),
            "f:env": {".": {}, **env_fields},
            "f:resources": {
                ".": {},
                "f:limits": {".": {}, **owned("cpu", "memory", "nvidia.com/gpu")},
                "f:requests": {".": {}, **owned("cpu", "memory", "nvidia.com/gpu")},
            },
            "f:volumeMounts": {
                ".": {},
                **{
                    f'k:{{"mountPath":"{m["mountPath"]}"}}': owned("mountPath", "name")
                    for m in mounts[:2]
                },
            },
        }
    }
    spec_fields = {
        "f:metadata": {"f:labels": {".": {}, **owned(*labels)}},
        "f:spec": {
            "f:containers": container_fields,
            **owned("dnsPolicy", "restartPolicy", "schedulerName", "tolerations", "volumes"),
        },
    }
    status_fields = {
        "f:status": {
            "f:conditions": {f'k:{{"type":"{c["type"]}"}}': owned("status") for c in ready},
            **owned("containerStatuses", "hostIP", "phase", "podIP", "startTime"),
        }
    }
    image = "registry.example.com/ml/trainer:2026.11"
    container = f"containerd://{source.getrandbits(256):064x}"
    return {
        "metadata": {
            "name": f"{job}-worker-{rank}",
            "generateName": f"{job}-worker-",
            "namespace": f"team-{source.randint(0, 19)}",
            "uid": f"{source.getrandbits(128):032x}",
            "resourceVersion": str(source.randint(10**6, 10**7)),
            "creationTimestamp": stamp,
            "labels": labels,
            "annotations": {
                "kubernetes.io/config.seen": stamp,
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9400",
            },
            "ownerReferences": [
                {
                    "apiVersion": "kubeflow.org/v1",
                    "kind": "PyTorchJob",
                    "name": job,
                    "uid": owner,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                managed("training-operator", stamp, spec_fields),
                managed("kubelet", stamp, status_fields, "status"),
            ],
        },
        "spec": {
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": f"{job}-data"}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "32Gi"}},
                {"name": mounts[2]["name"], "projected": {"defaultMode": 420, "sources": TOKEN}},
            ],
            "containers": [
                {
                    "name": "trainer",
                    "image": image,
                    "command": ["torchrun", "--nnodes=8", "--nproc-per-node", "train.py"],
                    "env": env,
                    "resources": {"limits": amounts, "requests": amounts},
                    "volumeMounts": mounts,
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
            "serviceAccountName": "default",
            "nodeName": node,
            "securityContext": {},
            "schedulerName": "alnair-scheduler",
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
                {
                    "key": "node.kubernetes.io/unreachable",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": ready,
            "hostIP": "10.0.3.7",
            "podIP": "10.244.8.19",
            "podIPs": [{"ip": "10.244.8.19"}],
            "startTime": stamp,
            "containerStatuses": [
                {
                    "name": "trainer",
                    "state": {"running": {"startedAt": stamp}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": image,
                    "imageID": f"{image}@sha256:{source.getrandbits(256):064x}",
                    "containerID": container,
                    "started": True,
                }
            ],
            "qosClass": "Guaranteed",
        },
    }


def make_pods(count: int) -> Iterator[bytes]:
    """Pods as JSON, job after job, always the same."""
    source = random.Random(SEED)
    made = 0
    for number in range(-(-count // 8)):
        for pod in make_job(source, number):
            if made == count:
                return
            made += 1
            yield json.dumps(pod, separators=(",", ":")).encode()


def make_lines(pods: list[bytes], count: int) -> Iterator[bytes]:
    """MODIFIED events of the pods in turn; each changes resourceVersion and priority."""
    for number in range(count):
        pod = pods[number % len(pods)]
        head, _, tail = pod.partition(b'"resourceVersion":"')
        _, _, tail = tail.partition(b'"')
        changed = tail.replace(b'"priority":0', b'"priority":%d' % (number // len(pods) + 1))
        yield (
            b'{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1",'
            + head[1:]
            + b'"resourceVersion":"%d"' % (10**7 + number)
            + changed
            + b"}\n"
        )
