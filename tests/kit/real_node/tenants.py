"""Random pods with GPUs of all kinds, and what each of their containers is due."""

import copy
import random
from pathlib import Path
from typing import Any

import msgspec

from alnair.kube.resources import Manifest
from alnair.local.real_node import images
from alnair.model import names
from kit.real_node import gpu_program

#: (MiB, percent; 0: none asked for): two of the largest fill a T4.
_SLICES = ((700, 0), (1200, 10), (2000, 25), (4000, 40), (7000, 50))
_KINDS = {"slice": 8, "whole": 3, "two": 1, "several": 4, "mixed": 1, "init": 3, "sidecar": 3}
#: Seconds that a container works.
_SHORT, _LONG = (0.2, 1.0), (1.0, 5.0)
#: More than any pod of the churn lives.
_FOREVER = 600.0


class Due(msgspec.Struct, frozen=True):
    """What a container is due.

    Attributes:
        whole: GPUs.
        memory_mib: Of a slice; 0: it has none.
        compute: Percent.
        tag: Under which the fake driver keeps its account.
    """

    whole: int
    memory_mib: int
    compute: int
    tag: str

    @property
    def limits(self) -> dict[str, str]:
        """What its container asks for."""
        if self.whole:
            return {names.GPU: str(self.whole)}
        found = {names.VGPU_MEMORY: self.memory_mib, names.VGPU_COMPUTE: self.compute}
        return {name: str(amount) for name, amount in found.items() if amount}


class Tenant(msgspec.Struct, frozen=True):
    """A pod and what its containers are due, by their names."""

    name: str
    kind: str
    due: dict[str, Due]
    manifest: Manifest


class Tenants:
    """Makes them.

    Args:
        chance: Of all choices.
        namespace: Of all pods.
    """

    def __init__(self, chance: random.Random, namespace: str) -> None:
        self._chance = chance
        self._namespace = namespace
        self._number = 0
        #: Tags that nobody has; the fake driver has room for 256.
        self._tags = [f"churn-{i:03}" for i in range(200)]
        self._program = Path(gpu_program.__file__).read_text()

    def make(self) -> Tenant:
        """Return one more."""
        kind = self._chance.choices(list(_KINDS), list(_KINDS.values()))[0]
        self._number += 1
        due: dict[str, Due] = {}
        spec: dict[str, Any] = {
            "schedulerName": names.SCHEDULER,
            "nodeSelector": {names.REAL_NODE: "true"},
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": self._chance.choice((1, 5)),
            "automountServiceAccountToken": False,
            "containers": [],
        }
        first: list[dict[str, Any]] = []
        size = self._chance.choice(_SLICES)
        smaller = self._chance.choice((700, 1000)), self._chance.choice((0, 10))
        if kind == "slice":
            wanted = [("main", self._slice(*size))]
        elif kind in ("whole", "two"):
            wanted = [("main", self._due(whole=1 + (kind == "two")))]
        elif kind == "several":
            wanted = [("main", self._slice(*smaller)), ("second", self._slice(1500, 20))]
            if self._chance.random() < 0.5:
                wanted.append(("without", self._due()))
        elif kind == "mixed":
            wanted = [("main", self._slice(*smaller)), ("second", self._due(whole=1))]
        else:
            wanted = [("main", self._slice(*size))]
            name = "begins" if kind == "init" else "beside"
            due[name] = self._slice(*smaller)
            seconds = _SHORT if kind == "init" else (_FOREVER, _FOREVER)
            first.append(self._container(name, due[name], *seconds))
            if kind == "sidecar":
                first[0]["restartPolicy"] = "Always"
        for name, one in wanted:
            due[name] = one
            spec["containers"].append(self._container(name, one, *_LONG))
        if first:
            spec["initContainers"] = first
        name = f"{kind}-{self._number}"
        metadata = {"name": name, "namespace": self._namespace}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return Tenant(name, kind, due, manifest)

    def replacement(self, tenant: Tenant) -> Tenant:
        """Return what the owner of a pod makes in its place."""
        self._number += 1
        name = f"{tenant.kind}-{self._number}"
        due = {
            container: msgspec.structs.replace(one, tag=self._tags.pop(0))
            for container, one in tenant.due.items()
        }
        manifest = copy.deepcopy(tenant.manifest)
        manifest["metadata"]["name"] = name
        spec = manifest["spec"]
        for container in [*spec["containers"], *spec.get("initContainers", ())]:
            container["env"] = _tagged(due[container["name"]])
        return Tenant(name, tenant.kind, due, manifest)

    def take_back(self, tenant: Tenant) -> None:
        """Let others have its tags."""
        self._tags += [one.tag for one in tenant.due.values()]

    def _slice(self, memory_mib: int, compute: int) -> Due:
        return self._due(memory_mib=memory_mib, compute=compute)

    def _due(self, whole: int = 0, memory_mib: int = 0, compute: int = 0) -> Due:
        return Due(whole, memory_mib, compute, self._tags.pop(0))

    def _container(self, name: str, due: Due, least: float, most: float) -> dict[str, Any]:
        seconds = f"{self._chance.uniform(least, most):.2f}"
        return {
            "name": name,
            "image": images.PYTHON,
            "imagePullPolicy": "Never",
            "command": ["python3", "-uc", self._program, seconds, "64", "0.1"],
            "env": _tagged(due),
            "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}, "limits": due.limits},
        }


def _tagged(due: Due) -> list[dict[str, str]]:
    return [{"name": "FAKEGPU_TAG", "value": due.tag}]
