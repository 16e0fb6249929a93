"""A node on which everything happens that may, in random order, until all must have settled."""

import random
from collections import Counter

from msgspec.structs import replace

from alnair.model import names
from alnair.model.api_types import AssignedGpu
from alnair.model.gpu_demand import ContainerGpus
from kit.model_node.api import Api
from kit.model_node.device_manager import AdmissionError, DeviceManager
from kit.model_node.judge import Judge
from kit.model_node.kubelet import Kubelet
from kit.model_node.plugin import Plugin
from kit.model_node.pods import NIC, OurScheduler, random_pod
from kit.node_state import node_gpus

#: Pods that are there at the same time, about.
_PODS = 14
#: So few slots per GPU that ids come again soon.
_SLOTS = 5
#: Tries in which all must have settled when nothing new happens.
_ROUNDS = 40


class NicPlugin:
    """Somebody else's: it fails now and then, after ours has allocated."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def allocate(self, resource: str, ids: frozenset[str]) -> str:
        if self.rng.random() < 0.1:
            raise AdmissionError("Allocate failed for vendor/nic")
        return "vendor/nic=0"

    def preferred(self, *_: object) -> list[str]:
        return []


class Node:
    """A node with so many GPUs.

    `foreign` is the part of pods that nobody gives GPUs. With `mistakes` GPUs fail, and at
    times our scheduler writes what the pod did not ask for. `aligned` is the device manager's.
    """

    def __init__(
        self,
        seed: int,
        *,
        gpus: int = 4,
        foreign: float = 0.0,
        mistakes: bool = False,
        aligned: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.foreign = foreign
        self.mistakes = mistakes
        self.containers: dict[str, list[ContainerGpus]] = {}
        self.api = Api()
        self.judge = Judge()
        numa = [index * 2 // gpus for index in range(gpus)]
        self.plugin = Plugin(self.rng, self.api, node_gpus(gpus, numa), self.judge, aligned=aligned)
        self.plugin.crashes = 0.01
        devices = DeviceManager(
            self.rng,
            {names.GPU: self.plugin, names.VGPU: self.plugin, NIC: NicPlugin(self.rng)},
            {
                names.GPU: [f"GPU-{i}" for i in range(gpus)],
                names.VGPU: [f"slot-{i}" for i in range(gpus * _SLOTS)],
                NIC: [f"nic-{i}" for i in range(8)],
            },
            {f"GPU-{i}": numa[i] for i in range(gpus)},
            aligned=aligned,
        )
        self.kubelet = Kubelet(
            self.rng, self.api, self.containers, self.plugin, devices, self.judge
        )
        self.plugin.checkpoint = lambda: devices.checkpoint
        self.scheduler = OurScheduler(self.rng, self.api, gpus)
        self.counts: Counter[str] = Counter()

    def run(self, admissions: int) -> Counter[str]:
        """Let things happen until so many pods were admitted; return all counts."""
        steps = 0
        while self.kubelet.counts["admissions"] < admissions:
            self.step()
            steps += 1
            if steps % 300 == 0:
                self.settle()
        self.settle()
        return self.counts + self.kubelet.counts + self.plugin.counts + self.judge.counts

    def step(self) -> None:
        """Let one thing happen."""
        actions = (
            (self.create, 12),
            (self.pass_news, 40),
            (self.start_something, 60),
            (self.end_container, 14),
            (self.step_end, 30),
            (self.delete, 3),
            (self.clean_up, 8),
            (self.restart_something, 1),
            (self.fail_or_heal, int(self.mistakes)),
        )
        action = self.rng.choices([a for a, _ in actions], [w for _, w in actions])[0]
        action()

    def create(self) -> None:
        """Submit a pod and bind it here, if a scheduler finds room."""
        if len(self.api.pods) >= _PODS:
            return
        number = self.counts["pods"]
        self.counts["pods"] += 1
        pod, containers = random_pod(self.rng, number)
        self.containers[pod.uid] = containers
        if self.rng.random() >= self.foreign:
            eager = self.rng.random() < 0.3
            parts = self.scheduler.assign(pod, containers, eager=eager)
            if parts is None:
                return
            self.counts["bound by ours"] += 1
            if parts and self.mistakes and self.rng.random() < 0.01:
                self.counts["wrongly assigned"] += 1
                parts = _spoilt(self.rng, parts)
            self.api.put(pod)
            # One write binds and assigns.
            self.api.log.pop()
            self.api.assign(pod.uid, parts)
        else:
            self.counts["bound by another"] += 1
            self.api.put(pod)

    def pass_news(self) -> None:
        if self.rng.random() < 0.5:
            self.kubelet.sync(self.rng.randrange(1, 4))
        else:
            self.plugin.watch.catch_up(self.rng.randrange(1, 4))
            self.plugin.knows_gpus = True

    def start_something(self) -> None:
        if self.kubelet.workers:
            self.kubelet.try_next(self.rng.choice(sorted(self.kubelet.workers)))

    def end_container(self) -> None:
        live = [who for who in self.judge.running if not self.kubelet.workers[who[0]].ends]
        if live:
            crashed = self.rng.random() < 0.3
            self.kubelet.end_container(self.rng.choice(sorted(live)), crashed=crashed)

    def step_end(self) -> None:
        if self.kubelet.workers:
            self.kubelet.step_end(self.rng.choice(sorted(self.kubelet.workers)))

    def delete(self) -> None:
        """Somebody deletes a pod, at times by force: then its object goes before its processes."""
        if not self.api.pods:
            return
        uid = self.rng.choice(sorted(self.api.pods))
        self.counts["deleted"] += 1
        if self.rng.random() < 0.25:
            self.api.remove(uid)
        else:
            self.api.delete(uid)

    def clean_up(self) -> None:
        """Ended pods linger, and go at last; the plugin forgets what it may."""
        ended = [uid for uid, pod in sorted(self.api.pods.items()) if pod.is_ended]
        if ended and self.rng.random() < 0.5:
            self.api.remove(self.rng.choice(ended))
        self.plugin.forget_ended()

    def restart_something(self) -> None:
        behind = self.rng.randrange(3)
        if self.rng.random() < 0.5:
            is_first = self.rng.random() < 0.6
            self.kubelet.restart(plugin_is_first=is_first, behind=behind)
        else:
            self.counts["plugin restarts"] += 1
            self.plugin.restart(behind)
        if self.rng.random() < 0.7:
            self.kubelet.register()

    def fail_or_heal(self) -> None:
        """A GPU takes no new containers for a while."""
        index = self.rng.randrange(len(self.plugin.gpus))
        is_healthy = self.rng.random() < 0.8
        gpu = self.plugin.gpus[index]
        self.plugin.gpus[index] = replace(gpu, problem="" if is_healthy else "XID 79")

    def settle(self) -> None:
        """Let nothing new happen: all that can start must then have started."""
        crashes, self.plugin.crashes = self.plugin.crashes, 0.0
        self.kubelet.register()
        self.plugin.knows_gpus = True
        for _ in range(_ROUNDS):
            self.kubelet.sync()
            self.plugin.watch.catch_up()
            for uid in sorted(self.kubelet.workers):
                self.kubelet.try_next(uid)
                self.kubelet.step_end(uid)
            for who in sorted(self.judge.running):
                container = next(c for c in self.containers[who[0]] if c.name == who[1])
                if container.init and not container.sidecar:
                    self.kubelet.end_container(who, crashed=False)
            self.plugin.forget_ended()
        self._judge_waiting()
        self._forget()
        self.plugin.crashes = crashes

    def _judge_waiting(self) -> None:
        waiting = {}
        for uid, worker in self.kubelet.workers.items():
            container = self.kubelet.next_start(uid)
            if container is not None:
                why = self.kubelet.errors.get((uid, container.name), "not tried")
                if "by hand" in why:
                    self.api.delete(uid)  # its owner sees what is wrong
                else:
                    waiting[uid, container.name] = why
            elif worker.ends and not worker.terminated:
                waiting[uid, "all"] = "it does not end"
        self.judge.waits_for_ever(waiting)

    def _forget(self) -> None:
        """Drop what is over, so that long runs stay quick."""
        for uid, worker in list(self.kubelet.workers.items()):
            if worker.terminated and uid not in self.api.pods:
                del self.kubelet.workers[uid]


def _spoilt(
    rng: random.Random, parts: dict[str, list[AssignedGpu]]
) -> dict[str, list[AssignedGpu]]:
    """Return what a scheduler with a mistake might write."""
    name = rng.choice(sorted(parts))
    first, *rest = parts[name]
    wrong: list[AssignedGpu] = rng.choice(
        (
            [],
            [*parts[name], first],
            [replace(first, uuid="GPU-elsewhere"), *rest],
            [replace(first, memory_mib=first.memory_mib + 500, whole=False), *rest],
        )
    )
    return {**parts, name: wrong}
