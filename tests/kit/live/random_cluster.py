"""Random clusters as manifests: nodes, pods on them, and pods to be judged, all from one seed.

Names, labels and values are few, so that selectors match now and then; amounts are small, so that
nodes are nearly full.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from alnair.kube.resources import Manifest
from kit.live.random_storage import BOUND_CLAIMS, HOSTNAME, OPEN_CLAIMS, ZONE

NODES: Final = 20
BOUND: Final = 40
PROBES: Final = 50
WISHES: Final = 12
#: Namespaces and their labels.
NAMESPACES: Final = {"one": {"team": "a"}, "two": {"team": "b"}, "three": {"team": "a"}}
_FPGA: Final = "example.com/fpga"
_POD_LABELS: Final = {"app": ("web", "db", "cache"), "tier": ("front", "back"), "rev": ("1", "2")}
_NODE_LABELS: Final = {
    ZONE: ("z0", "z1", "z2"),
    "rack": ("r0", "r1", "r2", "r3"),
    "disk": ("ssd", "hdd"),
    "generation": ("1", "2", "3", "10", "old"),
}
#: Images and their MiB.
_IMAGES: Final = {"registry.example/small:1": 40, "registry.example/cuda:12": 900}
#: A pod must not ask for a port twice.
_PORTS: Final = {"c0": (8080, 8081), "c1": (8082, 8083), "init": (8084,)}
_TAINTS: Final = ("dedicated", "flaky")
_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")


class RandomCluster:
    """The manifests of one cluster.

    Attributes:
        nodes: of the cluster.
        bound: pods on them; those with a finalizer are to be deleted, so that they stay, leaving.
        probes: pods to be judged, for this scheduler.
        wishes: pods with preferences, gated, whose nodes are to be scored.
    """

    def __init__(self, seed: int, scheduler: str) -> None:
        self._random = random.Random(seed)
        self._scheduler = scheduler
        self.nodes = [self._node(f"n{number:02}") for number in range(NODES)]
        self.bound = [self._bound(f"bound-{number}") for number in range(BOUND)]
        self.probes = [self._probe(f"probe-{number}") for number in range(PROBES)]
        self.wishes = [self._wish(f"wish-{number}") for number in range(WISHES)]

    # --- nodes ------------------------------------------------------------------------------------

    def _node(self, name: str) -> Manifest:
        r = self._random
        labels = {k: r.choice(v) for k, v in _NODE_LABELS.items() if r.random() < 0.8}
        if r.random() < 0.95:
            labels[HOSTNAME] = name
        capacity = {
            "cpu": r.choice(("2", "3500m", "4")),
            "memory": r.choice(("4Gi", "8Gi")),
            "pods": r.choice(("3", "6", "110")),
            "ephemeral-storage": "20Gi",
        }
        if r.random() < 0.3:
            capacity[_FPGA] = "2"
        spec: dict[str, Any] = {}
        if r.random() < 0.35:
            spec["taints"] = [
                {"key": key, "value": r.choice(("x", "y")), "effect": r.choice(_EFFECTS)}
                for key in r.sample(_TAINTS, r.choice((1, 1, 2)))
            ]
        if r.random() < 0.08:
            spec["unschedulable"] = True
        images = [
            {"names": [image], "sizeBytes": size << 20}
            for image, size in _IMAGES.items()
            if r.random() < 0.4
        ]
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {
                "images": images,
                "capacity": capacity,
                "allocatable": capacity,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }

    # --- pods -------------------------------------------------------------------------------------

    def _bound(self, name: str) -> Manifest:
        r = self._random
        pod = self._pod(name, cpu=("0", "100m", "500m", "1"))
        spec = pod["spec"]
        spec["nodeName"] = r.choice(self.nodes)["metadata"]["name"]
        if r.random() < 0.12:
            spec["affinity"] = {"podAntiAffinity": self._pod_affinity()}
        if r.random() < 0.25:
            spec["volumes"] = _volumes(r.sample(BOUND_CLAIMS, r.choice((1, 2))))
        if r.random() < 0.1:
            pod["metadata"]["finalizers"] = ["alnair.example/stay"]
        return pod

    def _probe(self, name: str) -> Manifest:
        """A pod that asks for a few things at once, of those that decide where it may go."""
        r = self._random
        pod = self._pod(name, cpu=("0", "100m", "700m", "1500m"))
        spec = pod["spec"]
        asks: Sequence[Callable[[dict[str, Any]], None]] = (
            self._ask_selector,
            self._ask_node_affinity,
            self._ask_spread,
            self._ask_spread,
            self._ask_pods_near,
            self._ask_pods_apart,
            self._ask_storage,
        )
        for ask in r.sample(asks, r.choice((0, 1, 1, 2))):
            ask(spec)
        if r.random() < 0.4:
            spec["tolerations"] = [self._toleration() for _ in range(r.choice((1, 2)))]
        return pod

    def _wish(self, name: str) -> Manifest:
        """A pod that most nodes can take, and that would like some more than others."""
        r = self._random
        pod = self._pod(name, cpu=("0", "100m", "300m"))
        spec = pod["spec"]
        spec["schedulingGates"] = [{"name": "alnair.example/later"}]
        asks: Sequence[Callable[[dict[str, Any]], None]] = (
            self._ask_spread,
            self._ask_spread,
            self._wish_nodes,
            self._wish_pods,
        )
        for ask in r.sample(asks, r.choice((0, 1, 2, 3))):
            ask(spec)
        for constraint in spec.get("topologySpreadConstraints", ()):
            constraint["whenUnsatisfiable"] = "ScheduleAnyway"
            constraint.pop("minDomains", None)
        if r.random() < 0.6:
            spec["tolerations"] = [{"operator": "Exists", "effect": "NoSchedule"}]
        return pod

    def _pod(self, name: str, cpu: Sequence[str]) -> Manifest:
        r = self._random
        labels = {k: r.choice(v) for k, v in _POD_LABELS.items() if r.random() < 0.7}
        containers = [self._container(f"c{i}", cpu) for i in range(r.choice((1, 1, 2)))]
        spec: dict[str, Any] = {
            "schedulerName": self._scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": containers,
        }
        if r.random() < 0.2:
            spec["initContainers"] = [self._container("init", cpu)]
            if r.random() < 0.5:
                spec["initContainers"][0]["restartPolicy"] = "Always"
        return {
            "metadata": {
                "name": name,
                "namespace": r.choice(tuple(NAMESPACES)),
                "labels": labels,
            },
            "spec": spec,
        }

    def _container(self, name: str, cpu: Sequence[str]) -> dict[str, Any]:
        r = self._random
        requests = {"cpu": r.choice(cpu), "memory": r.choice(("0", "200Mi", "1Gi"))}
        if r.random() < 0.1:
            requests["ephemeral-storage"] = r.choice(("1Gi", "15Gi"))
        container: dict[str, Any] = {"name": name, "image": r.choice(tuple(_IMAGES))}
        container["resources"] = {"requests": requests}
        if r.random() < 0.08:
            container["resources"]["limits"] = {_FPGA: "1"}
        if r.random() < 0.15:
            port = {"containerPort": 80, "hostPort": r.choice(_PORTS[name])}
            if r.random() < 0.4:
                port["hostIP"] = r.choice(("127.0.0.1", "127.0.0.2", "0.0.0.0"))
            if r.random() < 0.2:
                port["protocol"] = "UDP"
            container["ports"] = [port]
        return container

    # --- what probes ask for ----------------------------------------------------------------------

    def _ask_selector(self, spec: dict[str, Any]) -> None:
        r = self._random
        key = r.choice(tuple(_NODE_LABELS))
        spec["nodeSelector"] = {key: r.choice(_NODE_LABELS[key])}

    def _ask_node_affinity(self, spec: dict[str, Any]) -> None:
        terms = [self._node_term() for _ in range(self._random.choice((1, 2)))]
        spec.setdefault("affinity", {})["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }

    def _node_term(self) -> dict[str, Any]:
        r = self._random
        term: dict[str, Any] = {}
        if r.random() < 0.9:
            term["matchExpressions"] = [self._node_requirement() for _ in range(r.choice((1, 2)))]
        if r.random() < 0.15:
            term["matchFields"] = [
                {
                    "key": "metadata.name",
                    "operator": r.choice(("In", "NotIn")),
                    "values": [r.choice(self.nodes)["metadata"]["name"]],
                }
            ]
        return term

    def _node_requirement(self) -> dict[str, Any]:
        r = self._random
        if r.random() < 0.25:
            operator, values = r.choice(("Gt", "Lt")), [r.choice(("1", "2", "5"))]
            return {"key": "generation", "operator": operator, "values": values}
        return self._requirement(r.choice(tuple(_NODE_LABELS)), _NODE_LABELS)

    def _requirement(self, key: str, known: dict[str, tuple[str, ...]]) -> dict[str, Any]:
        r = self._random
        operator = r.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
        requirement: dict[str, Any] = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            requirement["values"] = r.sample(known[key], r.choice((1, 2)))
        return requirement

    def _pod_selector(self) -> dict[str, Any]:
        r = self._random
        key = r.choice(tuple(_POD_LABELS))
        if r.random() < 0.6:
            return {"matchLabels": {key: r.choice(_POD_LABELS[key])}}
        if r.random() < 0.2:
            return {}
        return {"matchExpressions": [self._requirement(key, _POD_LABELS)]}

    def _ask_spread(self, spec: dict[str, Any]) -> None:
        constraints = spec.setdefault("topologySpreadConstraints", [])
        r = self._random
        constraint: dict[str, Any] = {
            "topologyKey": r.choice((ZONE, ZONE, "rack", HOSTNAME)),
            "maxSkew": r.choice((1, 1, 2, 3)),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": self._pod_selector(),
        }
        if any(c["topologyKey"] == constraint["topologyKey"] for c in constraints):
            return  # the API server takes each key once
        if r.random() < 0.2:
            constraint["minDomains"] = r.choice((2, 4))
        if r.random() < 0.3:
            constraint["nodeAffinityPolicy"] = r.choice(("Honor", "Ignore"))
        if r.random() < 0.3:
            constraint["nodeTaintsPolicy"] = r.choice(("Honor", "Ignore"))
        if r.random() < 0.2:
            constraint["labelSelector"] = {"matchLabels": {"app": "web"}}
            constraint["matchLabelKeys"] = ["rev"]
        constraints.append(constraint)

    def _ask_pods_near(self, spec: dict[str, Any]) -> None:
        spec.setdefault("affinity", {})["podAffinity"] = self._pod_affinity()

    def _ask_pods_apart(self, spec: dict[str, Any]) -> None:
        spec.setdefault("affinity", {})["podAntiAffinity"] = self._pod_affinity()

    def _pod_affinity(self) -> dict[str, Any]:
        terms = [self._pod_term() for _ in range(self._random.choice((1, 1, 2)))]
        return {"requiredDuringSchedulingIgnoredDuringExecution": terms}

    def _pod_term(self) -> dict[str, Any]:
        r = self._random
        term: dict[str, Any] = {
            "topologyKey": r.choice((ZONE, "rack", HOSTNAME)),
            "labelSelector": self._pod_selector(),
        }
        if r.random() < 0.25:
            term["namespaces"] = r.sample(tuple(NAMESPACES), r.choice((1, 2)))
        if r.random() < 0.25:
            selectors = ({}, {"matchLabels": {"team": "a"}}, {"matchLabels": {"team": "none"}})
            term["namespaceSelector"] = r.choice(selectors)
        if r.random() < 0.15:
            term["labelSelector"] = {"matchLabels": {"app": "web"}}
            term[r.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["rev"]
        return term

    def _ask_storage(self, spec: dict[str, Any]) -> None:
        r = self._random
        claims = r.sample(BOUND_CLAIMS, r.choice((0, 1, 1, 2)))
        if not claims or r.random() < 0.2:
            claims.append(r.choice(OPEN_CLAIMS))
        spec["volumes"] = _volumes(claims)

    def _wish_nodes(self, spec: dict[str, Any]) -> None:
        r = self._random
        spec.setdefault("affinity", {})["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": r.choice((1, 10, 70)), "preference": self._node_term()}
                for _ in range(r.choice((1, 2)))
            ]
        }

    def _wish_pods(self, spec: dict[str, Any]) -> None:
        r = self._random
        for kind in r.sample(("podAffinity", "podAntiAffinity"), r.choice((1, 2))):
            spec.setdefault("affinity", {})[kind] = {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": r.choice((1, 10, 70)), "podAffinityTerm": self._pod_term()}
                    for _ in range(r.choice((1, 2)))
                ]
            }

    def _toleration(self) -> dict[str, Any]:
        r = self._random
        if r.random() < 0.15:
            return {"operator": "Exists"}
        toleration: dict[str, Any] = {"key": r.choice(_TAINTS)}
        if r.random() < 0.5:
            toleration["operator"] = "Exists"
        else:
            toleration["value"] = r.choice(("x", "y"))
        if r.random() < 0.5:
            toleration["effect"] = r.choice(_EFFECTS)
        return toleration


def services(namespace: str) -> list[Manifest]:
    """The Services of a namespace: default spread constraints are about their pods."""
    selectors = {"one": {"app": "web"}, "two": {"tier": "front", "rev": "1"}}
    selector = selectors.get(namespace)
    if selector is None:
        return []
    spec = {"clusterIP": "None", "selector": selector}
    return [{"metadata": {"name": "peers", "namespace": namespace}, "spec": spec}]


def _volumes(claims: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
        for claim in dict.fromkeys(claims)
    ]
