"""The kubelet's pods: admitted one after another, started container by container, ended."""

import random
from collections import Counter
from collections.abc import Mapping

from alnair.model import names
from alnair.model.gpu_demand import ContainerGpus
from kit.model_node.api import Api, Watch
from kit.model_node.device_manager import AdmissionError, DeviceManager
from kit.model_node.judge import Judge, Who
from kit.model_node.plugin import Plugin

Containers = Mapping[str, list[ContainerGpus]]


class Worker:
    """What becomes of one pod here; it outlives the kubelet, as containers in the runtime do."""

    def __init__(self, containers: list[ContainerGpus]) -> None:
        self.containers = containers
        self.finished: set[str] = set()
        #: Being ended; it keeps its devices until no process is left, unless it was rejected.
        self.ends = False
        self.rejected = False
        self.terminated = False


class Kubelet:
    """Admits, starts and ends pods as its own watch and the judge's processes say."""

    def __init__(
        self,
        rng: random.Random,
        api: Api,
        containers: Containers,
        plugin: Plugin,
        devices: DeviceManager,
        judge: Judge,
    ) -> None:
        self.rng = rng
        self.api = api
        self.containers = containers
        self.plugin = plugin
        self.devices = devices
        self.judge = judge
        self.watch = Watch(api)
        self.workers: dict[str, Worker] = {}
        self.counts: Counter[str] = Counter()
        #: What the last try to start a container said.
        self.errors: dict[Who, str] = {}

    def sync(self, events: int | None = None) -> None:
        """Take in so many events, or all: admit what is new, end what is to leave."""
        for uid in self.watch.catch_up(events):
            self._look_at(uid)

    def restart(self, *, plugin_is_first: bool, behind: int) -> None:
        """Lose what is in memory; the pods that the API server says are admitted again."""
        self.counts["kubelet restarts"] += 1
        self.devices.restart()
        self.devices.sources_ready = False
        if plugin_is_first:
            self.devices.register()
        self.watch.list_again(behind)
        alive = sorted(self.watch.pods.values(), key=lambda pod: pod.created)
        for pod in alive:
            worker = self.workers.get(pod.uid)
            self._look_at(pod.uid)
            if worker and not (worker.ends or worker.terminated):
                self._admit(pod.uid, worker)
        for uid in self.workers.keys() - self.watch.pods.keys():
            self.workers[uid].ends = True
        self.devices.sources_ready = True

    def register(self) -> None:
        self.devices.register()

    def _look_at(self, uid: str) -> None:
        pod = self.watch.pods.get(uid)
        worker = self.workers.get(uid)
        if pod is None or pod.is_leaving:
            if worker is None and pod is not None:
                worker = self.workers[uid] = Worker(self.containers[uid])
            if worker:
                worker.ends = True
        elif worker is None and not pod.is_ended:
            worker = self.workers[uid] = Worker(self.containers[uid])
            self._admit(uid, worker)

    def _active(self) -> set[str]:
        """Pods that keep their devices."""
        return {uid for uid, w in self.workers.items() if not (w.rejected or w.terminated)}

    def _admit(self, uid: str, worker: Worker) -> None:
        self.counts["admissions"] += 1
        running = {name for _, name in self.judge.of_pod(uid)}
        try:
            for container in worker.containers:
                self.devices.allocate(uid, container, self._active(), running)
        except AdmissionError as error:
            self.counts[f"rejected: {str(error).partition(' for ')[0]}"] += 1
            worker.rejected = worker.ends = True
            self.api.end(uid)

    def next_start(self, uid: str) -> ContainerGpus | None:
        """Return the container that is to start next, in order; None while there is none."""
        worker = self.workers[uid]
        if worker.ends or worker.terminated:
            return None
        running = {name for _, name in self.judge.of_pod(uid)}
        for container in worker.containers:
            if container.init:
                if container.name in worker.finished:
                    continue
                if container.name not in running:
                    return container
                if not container.sidecar:
                    return None
        waiting = [
            c for c in worker.containers if not c.init and c.name not in running | worker.finished
        ]
        return self.rng.choice(waiting) if waiting else None

    def try_next(self, uid: str) -> None:
        """Try to start the pod's next container."""
        container = self.next_start(uid)
        if container is None:
            return
        who = (uid, container.name)
        resources = [r for r in container.resources if r in self.devices.devices]
        self.rng.shuffle(resources)
        for resource in resources:
            error = self._pre_start(who, container, resource)
            if error:
                self.errors[who] = error
                return
        parts = []
        for resource in resources:
            entry = self.devices.entry(uid, container.name, resource)
            if entry is None:
                self.errors[who] = "no devices"
                return
            if resource not in (names.GPU, names.VGPU):
                continue
            spec = self.plugin.specs.get(entry.device)
            if spec is None:
                self.errors[who] = f"unresolvable CDI device {entry.device}"
                self.counts["no CDI spec"] += 1
                return
            parts += spec.parts
            chosen = {self.devices.numa.get(i) for i in entry.ids}
            given = {self.devices.numa[part.uuid] for part in spec.parts}
            if self.devices.aligned and resource == names.GPU and chosen != given:
                self.judge.is_far(who)
        self.errors.pop(who, None)
        self.judge.starts(who, container, parts, self.api.last[uid])

    def _pre_start(self, who: Who, container: ContainerGpus, resource: str) -> str:
        if resource not in (names.GPU, names.VGPU):
            return ""
        if resource not in self.devices.opts_known:
            # After its restart the kubelet does not know that the plugin wants this call.
            self.counts["PreStart skipped"] += 1
            return ""
        entry = self.devices.entry(*who, resource)
        if entry is None:
            return "no devices found allocated in local cache"
        checkpoint = self.devices.checkpoint
        is_listed = container.sidecar or not container.init
        if is_listed and self.rng.random() < 0.02:
            checkpoint = self.devices.checkpoint_before  # read a moment too early
        self.devices.free_ended(self._active())
        listed = [
            ("team", uid.removeprefix("uid-"), c.name)
            for uid in self._active()
            for c in self.workers[uid].containers
            if (c.sidecar or not c.init)
            and (held := self.devices.entry(uid, c.name, resource))
            and held.ids & entry.ids
        ]
        return self.plugin.pre_start(resource, entry.ids, checkpoint, listed, who)

    def end_container(self, who: Who, *, crashed: bool) -> None:
        """A process ends: an init container is done, or it crashed and starts again."""
        uid, name = who
        worker = self.workers[uid]
        container = next(c for c in worker.containers if c.name == name)
        self.judge.ends(who)
        if not crashed and not container.sidecar:
            worker.finished.add(name)
        if all(c.init or c.name in worker.finished for c in worker.containers):
            worker.ends = True

    def step_end(self, uid: str) -> None:
        """End one process of a pod that is to end; when none is left, say so."""
        worker = self.workers[uid]
        if not worker.ends or worker.terminated:
            return
        processes = self.judge.of_pod(uid)
        if processes:
            self.judge.ends(self.rng.choice(processes))
            return
        worker.terminated = True
        pod = self.api.pods.get(uid)
        if pod and pod.is_leaving:
            self.api.remove(uid)
        elif pod and not pod.is_ended:
            self.api.end(uid)
