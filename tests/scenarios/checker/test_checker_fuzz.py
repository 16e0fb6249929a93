"""The engine's decisions before the independent checker, which finds nothing wrong with them."""

import copy
import random
from typing import Any

import msgspec
import pytest

from alnair.checker.cluster import check
from alnair.checker.objects.state import cluster_of
from alnair.checker.over_time.live_check import Watching
from alnair.checker.registry import CLUSTER_RULES
from alnair.checker.violation import Violation
from alnair.kube.objects import wire
from alnair.kube.objects.annotations import gpu_assignment
from alnair.kube.objects.namespaced_limits import project_quota
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.watched_kinds import STORAGE
from alnair.kube.pod_groups.dialects import GangProjector, PodGroupWire
from kit.world import World

Manifest = dict[str, Any]
API = "scheduling.x-k8s.io/v1alpha1"
ZONE, HOST = "zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APPS = "abc"
TIME = "2026-01-01T00:00:00Z"
#: Rules about what others do to the world, such as leaving a gang in part, are not looked at.
RULES = {*CLUSTER_RULES, "host-ports", "pod-affinity", "quota-max", "preemption-priority"}
STORES = {resource.kind: (resource.type, project) for resource, project in STORAGE}


class Lab:
    """A world and its manifests; both a watch and a single look judge what the engine does to it.

    The engine reads the manifests through the projection, as in a cluster.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = World(seed=seed, check=False)
        self.world.graceful = True
        self.watching = Watching()
        self.project = PodProjector()
        self.count = 0
        self.manifests: dict[str, Manifest] = {}
        self.gangs: dict[str, Manifest] = {}
        self.nodes = [self.node(i) for i in range(6)]
        self.claims: list[Manifest] = []
        self.volumes: list[Manifest] = []
        #: The state of each pod that the watch was told.
        self.told: dict[str, Any] = {}
        self.watching.nodes(self.nodes, [], self.world.now)
        self.watching.quotas.take([], [], self.world.now)
        self.watching.gangs.take(API, [], [], self.world.now)
        self.watching.pods([], [], self.world.now)
        for node in self.nodes:
            self.world.put(project_node(msgspec.convert(node, wire.NodeWire)))
        for i in range(4):
            self.claim(i)

    # --- objects ------------------------------------------------------------------------------

    def node(self, i: int) -> Manifest:
        name = f"n{i}"
        return {
            "metadata": {"name": name, "labels": {HOST: name, ZONE: f"z{i % 3}"}},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "20"}},
        }

    def claim(self, i: int) -> None:
        name = f"c{i}"
        here = {"key": HOST, "operator": "In", "values": [f"n{self.chance.randrange(6)}"]}
        self.claims.append(
            {
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": f"v-{name}"},
                "status": {"phase": "Bound"},
            }
        )
        self.claims[-1]["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        reference = {"name": name, "namespace": "default", "uid": name}
        self.volumes.append(
            {
                "metadata": {"name": f"v-{name}"},
                "spec": {
                    "accessModes": ["ReadWriteOncePod"],
                    "claimRef": reference,
                    "nodeAffinity": {
                        "required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
                    },
                },
                "status": {"phase": "Bound"},
            }
        )
        for kind, made in (
            ("PersistentVolumeClaim", self.claims[-1]),
            ("PersistentVolume", self.volumes[-1]),
        ):
            shape, project = STORES[kind]
            metadata = made["metadata"]
            value = project(msgspec.convert(made, shape))
            self.world.set_object(kind, metadata["name"], value, metadata.get("namespace", ""))

    def pod(self, *, group: str = "", stores: bool = False) -> Manifest:
        chance = self.chance
        self.count += 1
        name = f"p{self.count}"
        labels = {"app": chance.choice(APPS)}
        if group:
            labels["scheduling.x-k8s.io/pod-group"] = group
        container: Manifest = {
            "name": "main",
            "resources": {"requests": {"cpu": chance.choice(("100m", "500m", "1", "2"))}},
        }
        spec: Manifest = {
            "schedulerName": "alnair-scheduler",
            "priority": chance.choice((0, 0, 5, 9)),
            "containers": [container],
        }
        kind = 3 if stores else chance.randrange(6)
        if kind == 0:
            port = {"hostPort": chance.choice((80, 81)), "containerPort": 1}
            port |= {"hostIP": chance.choice(("0.0.0.0", "10.0.0.1", "10.0.0.2"))}
            container["ports"] = [port]
        if kind in (1, 2):
            term = {
                "topologyKey": chance.choice((ZONE, HOST)),
                "labelSelector": {"matchLabels": {"app": chance.choice(APPS)}},
            }
            which = "podAffinity" if kind == 1 else "podAntiAffinity"
            spec["affinity"] = {which: {REQUIRED: [term]}}
        if kind == 3 and not group:
            source = {"claimName": f"c{chance.randrange(4)}"}
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": source}]
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels}
        metadata["creationTimestamp"] = TIME
        return {"metadata": metadata, "spec": spec, "status": {}}

    def create(self, manifest: Manifest) -> None:
        self.manifests[manifest["metadata"]["uid"]] = manifest
        self.world.create(self.project(msgspec.convert(manifest, wire.PodWire)))

    def new_pod(self) -> None:
        self.create(self.pod())

    def new_gang(self, required: bool | None = None) -> None:
        self.count += 1
        name = f"g{self.count}"
        size = self.chance.choice((2, 3))
        annotations = {}
        if self.chance.random() < 0.7 if required is None else required:
            annotations["ai.centaurus.io/topology-required"] = HOST
        group = {
            "apiVersion": API,
            "metadata": {
                "name": name,
                "namespace": "default",
                "annotations": annotations,
                "creationTimestamp": TIME,
            },
            "spec": {"minMember": size},
        }
        self.gangs[name] = group
        self.world.declare(GangProjector(API)(msgspec.convert(group, PodGroupWire)))
        self.watching.gangs.take(API, None, [("ADDED", group)], self.world.now)
        for _ in range(size):
            self.create(self.pod(group=name))

    def foreign(self) -> None:
        manifest = self.pod()
        manifest["spec"] |= {"schedulerName": "default-scheduler", "volumes": []}
        self.manifests[manifest["metadata"]["uid"]] = manifest
        pod = self.project(msgspec.convert(manifest, wire.PodWire))
        self.world.foreign(pod, f"n{self.chance.randrange(6)}")

    def quota(self, cpu: str = "") -> None:
        limits = {"cpu": cpu or self.chance.choice(("4", "10", "30"))}
        made = {
            "metadata": {"name": "q", "namespace": "default"},
            "spec": {"min": limits, "max": limits},
        }
        self.world.set_object(
            "ElasticQuota",
            "q",
            project_quota(msgspec.convert(made, wire.ElasticQuotaWire)),
            "default",
        )
        self.watching.quotas.take(None, [("MODIFIED", made)], self.world.now)

    def relabel(self) -> None:
        if uid := self.some():
            manifest = self.manifests[uid]
            manifest["metadata"]["labels"]["app"] = self.chance.choice(APPS)
            labels = tuple(sorted(manifest["metadata"]["labels"].items()))
            self.world.update(manifest["metadata"]["name"], labels=labels)

    def some(self) -> str:
        uids = [pod.uid for pod in self.world.pods.values() if not pod.deleting]
        return self.chance.choice(uids) if uids else ""

    def finish(self) -> None:
        if uid := self.some():
            self.world.update(self.world.pods[uid].name, finished=True)

    def delete(self) -> None:
        leaving = [pod.uid for pod in self.world.pods.values() if pod.deleting]
        if uid := self.chance.choice(leaving) if leaving else self.some():
            self.world.delete_uid(uid)

    # --- what the API server would return -----------------------------------------------------

    def manifest(self, uid: str) -> Manifest:
        pod = self.world.pods[uid]
        made = copy.deepcopy(self.manifests[uid])
        made["spec"]["nodeName"] = pod.node
        made["metadata"]["labels"] = dict(pod.labels)
        made["status"]["phase"] = "Succeeded" if pod.finished else "Running"
        if pod.assignment:
            text = gpu_assignment(pod.assignment, self.world.now)
            made["metadata"]["annotations"] = {"ai.centaurus.io/gpu-assignment": text}
        if pod.deleting:
            made["metadata"]["deletionTimestamp"] = TIME
        if pod.preempted:
            made["status"]["conditions"] = [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "PreemptionByScheduler",
                    "message": "alnair-scheduler: preempting to accommodate another",
                }
            ]
        return made

    def see(self) -> None:
        """Let the watch see what has changed."""
        changes = []
        for uid in [uid for uid in self.told if uid not in self.world.pods]:
            changes.append(("DELETED", self.manifests[uid]))
            del self.told[uid]
        for uid, pod in self.world.pods.items():
            if self.told.get(uid) is not pod:
                changes.append(("MODIFIED" if uid in self.told else "ADDED", self.manifest(uid)))
                self.told[uid] = pod
        self.watching.pods(None, changes, self.world.now)
        self.watching.tick(self.world.now)

    def run(self, operations: int, *, quotas: bool) -> None:
        choices = [self.new_pod] * 6 + [self.new_gang, self.foreign, self.finish]
        choices += [self.delete] * 3 + [self.relabel] + [self.quota] * quotas
        for _ in range(operations):
            self.chance.choice(choices)()
            self.see()
            self.decide(self.chance.choice((0, 0.2, 1, 4, 10)))

    def decide(self, seconds: float) -> None:
        self.world.step()
        while self.world.outbox:
            self.world.carry_out()
            self.see()
        self.world.now += seconds

    def look(self) -> list[Violation]:
        pods = [self.manifest(uid) for uid in self.world.pods]
        cluster = cluster_of(
            self.nodes, pods, self.gangs.values(), claims=self.claims, volumes=self.volumes
        )
        return check(cluster).violations


@pytest.mark.parametrize("quotas", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_what_the_engine_decides_keeps_all_promises(seed: int, *, quotas: bool) -> None:
    lab = Lab(seed)
    lab.run(250, quotas=quotas)
    lab.world.now += 100
    lab.see()
    lab.watching.finish(lab.world.now)
    assert [v for v in lab.watching.violations if v.rule in RULES] == []
    assert len(lab.world.placed()) > 5


class Breaker:
    """A lab at rest, in which single promises are broken."""

    def __init__(self, seed: int, operations: int = 50) -> None:
        self.lab = Lab(seed)
        self.lab.create(self.lab.pod(stores=True))
        for _ in range(3):
            self.lab.new_gang(required=True)
        for _ in range(20):
            self.lab.new_pod()
            self.lab.decide(1)
        self.lab.run(operations, quotas=False)
        self.rest()

    def rest(self) -> None:
        """Let time pass, so that everything is known."""
        self.lab.world.now += 100
        self.lab.see()

    def held(self) -> list[Manifest]:
        """Our pods on nodes, that neither end nor leave."""
        return [
            manifest
            for manifest in (self.lab.manifest(uid) for uid in self.lab.world.pods)
            if manifest["spec"]["nodeName"]
            and manifest["status"]["phase"] == "Running"
            and "deletionTimestamp" not in manifest["metadata"]
            and manifest["spec"]["schedulerName"] != "default-scheduler"
        ]

    def bind(self, node: str, app: str = "", **spec: Any) -> None:
        """Let our scheduler bind a pod that wants no more than this."""
        manifest = self.lab.pod()
        manifest["metadata"]["labels"] = {"app": app or "other"}
        container = {"name": "main", "resources": {"requests": {"cpu": "100m"}}}
        manifest["spec"] = {"schedulerName": "alnair-scheduler", "containers": [container], **spec}
        now = self.lab.world.now
        self.lab.watching.pods(None, [("ADDED", manifest)], now)
        bound = copy.deepcopy(manifest)
        bound["spec"]["nodeName"] = node
        self.lab.watching.pods(None, [("MODIFIED", bound)], now + 0.01)
        self.rest()

    def rules(self) -> set[str]:
        """What the watch has found."""
        self.lab.watching.finish(self.lab.world.now)
        return {v.rule for v in self.lab.watching.violations if v.rule in RULES}

    def look(self, *pods: Manifest) -> set[str]:
        """Judge the lab with these pods instead of its own of their names, or beside them."""
        by_uid = {manifest["metadata"]["uid"]: manifest for manifest in self.held()}
        by_uid |= {manifest["metadata"]["uid"]: manifest for manifest in pods}
        lab = self.lab
        stored = {"claims": lab.claims, "volumes": lab.volumes}
        cluster = cluster_of(lab.nodes, by_uid.values(), lab.gangs.values(), **stored)
        return {v.rule for v in check(cluster).violations if v.rule in RULES}


def required(kind: str, app: str) -> Manifest:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {REQUIRED: [term]}}


@pytest.mark.parametrize("seed", range(3))
def test_one_binding_against_a_promise_is_found_in_such_a_world(seed: int) -> None:
    for rule in ("", "host-ports", "pod-affinity", "pod-anti-affinity", "quota-max"):
        breaker = Breaker(seed)
        there = breaker.held()[0]
        node, app = there["spec"]["nodeName"], there["metadata"]["labels"]["app"]
        if rule == "host-ports":
            container = {"name": "main", "ports": [{"hostPort": 8080}]}
            breaker.bind(node, containers=[container])
            assert breaker.rules() == set()
            breaker.bind(node, containers=[container])
        elif rule == "pod-affinity":
            breaker.bind(node, affinity=required("podAffinity", app))
            assert breaker.rules() == set()
            breaker.bind(node, affinity=required("podAffinity", "nobody"))
        elif rule == "pod-anti-affinity":
            breaker.bind(node, affinity=required("podAntiAffinity", "nobody"))
            assert breaker.rules() == set()
            breaker.bind(node, affinity=required("podAntiAffinity", app))
        elif rule == "quota-max":
            breaker.lab.quota("0")
            breaker.rest()
            assert breaker.rules() == set()
            breaker.bind(node)
        assert breaker.rules() == ({rule} if rule else set())


@pytest.mark.parametrize("seed", range(3))
def test_a_preemption_for_nobody_above_is_found_in_such_a_world(seed: int) -> None:
    breaker = Breaker(seed)
    victim = next(
        uid
        for uid, pod in breaker.lab.world.pods.items()
        if pod.node and pod.priority == 9 and not pod.group and not pod.finished
    )
    pod = breaker.lab.world.pods[victim]
    breaker.lab.world.update(pod.name, deleting=True, preempted=True)
    breaker.lab.see()
    breaker.bind(pod.node, priority=9)
    assert breaker.rules() == {"preemption-priority"}


@pytest.mark.parametrize("seed", range(3))
def test_a_pod_in_the_wrong_place_is_found_in_such_a_world(seed: int) -> None:
    breaker = Breaker(seed, operations=0)
    pods = breaker.held()
    lab = breaker.lab

    def elsewhere(manifest: Manifest) -> Manifest:
        moved = copy.deepcopy(manifest)
        moved["spec"]["nodeName"] = next(
            n["metadata"]["name"]
            for n in lab.nodes
            if n["metadata"]["name"] != manifest["spec"]["nodeName"]
        )
        return moved

    assert breaker.look() == set()
    storing = next(m for m in pods if m["spec"].get("volumes"))
    again = copy.deepcopy(storing)
    again["metadata"] |= {"name": "again", "uid": "again"}
    assert "claim-exclusive" in breaker.look(again)
    assert "volume-node" in breaker.look(elsewhere(storing))
    groups = {name for name, g in lab.gangs.items() if g["metadata"]["annotations"]}
    label = "scheduling.x-k8s.io/pod-group"
    members = [m for m in pods if m["metadata"]["labels"].get(label) in groups]
    here = [m["metadata"]["labels"][label] for m in members]
    member = next(m for m, group in zip(members, here, strict=True) if here.count(group) > 1)
    assert "gang-topology" in breaker.look(elsewhere(member))
