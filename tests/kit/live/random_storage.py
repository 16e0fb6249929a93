"""Storage that pods of random clusters ask for: the same for all clusters, made once.

No controller binds or protects anything, so that what is bound says so itself.
"""

from typing import Any, Final

from alnair.kube.resources import Manifest

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
_DRIVER: Final = "csi.example.com"
#: Claims of each namespace that are bound.
BOUND_CLAIMS: Final = ("zonal", "local", "labelled", "once", "csi-0", "csi-1", "csi-2")
#: Claims that are not, or not to a volume that is there, and one that does not exist.
OPEN_CLAIMS: Final = ("any-local", "large-local", "dynamic", "at-once", "gone", "missing")


def classes() -> list[Manifest]:
    """The storage classes: local and dynamic ones wait for a pod."""
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z0", "z2"]}]}]
    return [
        _class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        _class("dynamic", _DRIVER, "WaitForFirstConsumer", allowedTopologies=topology),
        _class("at-once", _DRIVER, "Immediate"),
    ]


def csi_nodes(nodes: int) -> list[Manifest]:
    """What the driver says of so many nodes: every third takes one volume, others two or any."""
    return [
        {
            "metadata": {"name": f"n{number:02}"},
            "spec": {
                "drivers": [
                    {
                        "name": _DRIVER,
                        "nodeID": f"n{number:02}",
                        "allocatable": {"count": 1 + number % 2},
                    }
                    if number % 3
                    else {"name": _DRIVER, "nodeID": f"n{number:02}"}
                ]
            },
        }
        for number in range(nodes)
    ]


def claims(namespace: str) -> list[Manifest]:
    """The claims of a namespace, with their status."""
    found = [
        _claim(namespace, name, "manual", volume=f"{namespace}-{name}") for name in BOUND_CLAIMS
    ]
    found[BOUND_CLAIMS.index("once")]["spec"]["accessModes"] = ["ReadWriteOncePod"]
    return [
        *found,
        _claim(namespace, "any-local", "local"),
        _claim(namespace, "large-local", "local", size="50Gi"),
        _claim(namespace, "dynamic", "dynamic"),
        _claim(namespace, "at-once", "at-once"),
        _claim(namespace, "gone", "manual", volume="not-there"),
    ]


def volumes(namespace: str) -> list[Manifest]:
    """The volumes that the claims of a namespace are bound to, with their status."""
    places: dict[str, dict[str, Any]] = {
        "zonal": {"nodeAffinity": _only(ZONE, "z0", "z1")},
        "local": {"nodeAffinity": _only(HOSTNAME, *(f"n{i:02}" for i in range(3, 11)))},
    }
    found = []
    for name in BOUND_CLAIMS:
        claim = {"namespace": namespace, "name": name, "uid": ""}
        volume = _volume(f"{namespace}-{name}", "manual", claimRef=claim, **places.get(name, {}))
        if name.startswith("csi"):
            del volume["spec"]["hostPath"]
            volume["spec"]["csi"] = {"driver": _DRIVER, "volumeHandle": f"{namespace}-{name}"}
        if name == "labelled":
            volume["metadata"]["labels"] = {ZONE: "z1__z2"}
        if name == "once":
            volume["spec"]["accessModes"] = ["ReadWriteOncePod"]
        found.append(volume)
    return found


def free_volumes() -> list[Manifest]:
    """Volumes that claims of the class `local` may get."""
    return [
        _volume(f"free-{i}", "local", size=size, nodeAffinity=_only(HOSTNAME, f"n{i:02}"))
        for i, size in enumerate(("1Gi", "5Gi", "500Mi", "2Gi", "1Gi", "2Gi"))
    ]


def _class(name: str, provisioner: str, mode: str, **rest: Any) -> Manifest:
    return {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **rest,
    }


def _claim(
    namespace: str, name: str, storage_class: str, *, size: str = "1Gi", volume: str = ""
) -> Manifest:
    meta: dict[str, Any] = {"name": name, "namespace": namespace}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
    }
    if volume:
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        spec["volumeName"] = volume
    return {"metadata": meta, "spec": spec, "status": {"phase": "Bound" if volume else "Pending"}}


def _volume(name: str, storage_class: str, *, size: str = "1Gi", **spec: Any) -> Manifest:
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "hostPath": {"path": f"/disks/{name}"},
            **spec,
        },
        "status": {"phase": "Bound" if "claimRef" in spec else "Available"},
    }


def _only(key: str, *values: str) -> dict[str, Any]:
    requirement = {"key": key, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
