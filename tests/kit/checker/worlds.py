"""Small worlds for the rules: shorthands for nodes, pods and gangs together."""

from typing import Any

from kit.checker.objects import Manifest, assignment, container, node, part, pod, whole

Objects = dict[str, list[Manifest]]


#: One MIG device, asked for or offered.
MIG = {"nvidia.com/mig-1g.10gb": "1"}


def world(
    *pods: Manifest,
    nodes: list[Manifest] | None = None,
    groups: list[Manifest] | None = None,
    **others: list[Manifest],
) -> Objects:
    """Objects by kind; `others` are claims and volumes."""
    return {"nodes": nodes or [node(gpus=2)], "pods": list(pods), "groups": groups or [], **others}


def serving(name: str, number: int = 80, address: str = "", **changes: Any) -> Manifest:
    """A pod with a host port."""
    port = {"hostPort": number, "containerPort": 1}
    port |= {"hostIP": address} if address else {}
    port |= {"protocol": changes.pop("protocol")} if "protocol" in changes else {}
    main = {**container(), "ports": [port]}
    return pod(name, main, **changes)


def apart(name: str, key: str = "rack", term: Manifest | None = None, **changes: Any) -> Manifest:
    """A pod that wants no pods with app=a in its domain, or those of the given term."""
    about = {"topologyKey": key, **(term or {"labelSelector": {"matchLabels": {"app": "a"}}})}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [about]}
    return pod(name, spec={"affinity": {"podAntiAffinity": required}}, **changes)


def racks(*names: str) -> list[Manifest]:
    """Nodes n0, n1, … in these racks; an empty name is none."""
    prefix = "topology.kubernetes.io/"
    return [
        node(f"n{i}", labels={"rack": name, prefix + "rack": name} if name else {})
        for i, name in enumerate(names)
    ]


def storing(name: str, *claims: str, **changes: Any) -> Manifest:
    """A pod that uses claims."""
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return pod(name, spec={"volumes": volumes}, **changes)


def slice_pod(name: str, mib: int, percent: int, uuid: str = "n-0", **changes: Any) -> Manifest:
    return pod(
        name,
        container(mib=mib, percent=percent),
        assigned=assignment(main=[part(uuid, mib, percent)]),
        **changes,
    )


def whole_pod(name: str, *uuids: str, **changes: Any) -> Manifest:
    return pod(
        name,
        container(whole=len(uuids)),
        assigned=assignment(main=[whole(u) for u in uuids]),
        **changes,
    )


def affine(*expressions: Manifest, fields: tuple[Manifest, ...] = ()) -> Manifest:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    required = {"nodeSelectorTerms": [term]}
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return pod(spec={"affinity": {"nodeAffinity": node_affinity}})


def needs(key: str, operator: str, *values: str) -> Manifest:
    return {"key": key, "operator": operator, "values": list(values)}


def tainted(effect: str = "NoSchedule", key: str = "team") -> list[Manifest]:
    return [node(taints=[{"key": key, "value": "a", "effect": effect}])]


def tolerant(**toleration: str) -> Manifest:
    return pod(spec={"tolerations": [toleration]})


def member(
    name: str, on: str, label: str = "scheduling.x-k8s.io/pod-group", **c: object
) -> Manifest:
    return pod(name, on=on, labels={label: "g"}, **c)


A = {"app": "a"}
RWOP = "ReadWriteOncePod"
RACK = [node(labels={"rack": "r"})]
LEGACY = "pod-group.scheduling.sigs.k8s.io"
SOFT = {"ai.centaurus.io/vgpu-policy": "soft"}
BORROW = {"ai.centaurus.io/vgpu-memory-policy": "soft"}
SWAP = {"ai.centaurus.io/vgpu-memory-policy": "swap"}
T4 = {"ai.centaurus.io/gpu-models": "A10, T4"}
NOT_T4 = {"ai.centaurus.io/gpu-models-not": "T4"}
A10 = {"ai.centaurus.io/gpu-models": "A10"}
BAD_PART = part("n-0", 100, 10)
