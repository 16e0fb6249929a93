"""A node on which pods come and go by chance, on files as the kernel's, and its profiler's judge.

Everything is told apart by numbers that no other has: each container holds its own amount of
memory, each process its own of the GPU, each pod sends its own number of bytes. So whatever is
counted to another, or lost, is seen. The API server knows pods a moment later than the node does,
or earlier; pids are given again, names too, and some pods come from files: their groups bear
another uid.
"""

import random
import shutil
import time
from pathlib import Path
from typing import Final

import msgspec

from alnair.model import usage
from alnair.model.usage import PodUsage
from alnair.node.cgroups import Proc
from alnair.node.gpu_looks import GpuLook
from alnair.node.inventory import Inventory
from alnair.node.load import GpuHolder
from alnair.node.pods.reader import PodsReader
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.profiler.kept_usage import KeptUsage
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.profiler.samples import GpuSample, ProcessSample
from kit.fake_cgroups import FakeCgroups
from kit.profiled_node import Names

GPUS: Final = tuple(f"GPU-{number:08}-0000-0000-0000-000000000000" for number in range(8))
MIB: Final = 1 << 20
#: Seconds after which a container whose name is known must be in the books: the folder of a pod is
#: looked at every other second, and what is gone from it brings another look a second later.
LATE: Final = 3
#: So few pids that each is given again and again.
_PIDS: Final = range(100, 700)
_DEV: Final = "Inter-|   Receive  |  Transmit\n face |bytes\n  eth0:0 9 0 0 0 0 0 0 {} 9 0 0\n"


class Container(msgspec.Struct):
    """One, and what it really used.

    Attributes:
        folder: Its group.
        memory: Pages that it holds; no other container holds so many.
        micros: Its counter of processor time.
        known: Seconds for which a profiler could see it, and knew its name.
    """

    name: str
    id: str
    folder: Path
    memory: int
    pids: list[int] = []
    micros: int = 0
    known: int = 0


class Pod(msgspec.Struct):
    """A pod, and what of it must be found again.

    Attributes:
        group: Its uid in the groups.
        gpu: That it was given.
        pid: The process on it.
        sm: Percent of it that it uses.
        sms: All that its processes used.
        micros: Processor time of all its containers.
        told: Part of it that a profiler must have seen.
        sent: Bytes.
        memories: Container → pages that it held when a profiler could see them.
        looked: Looks at the GPU in which its process was there, by this agent.
        surely: Containers that must be in the books.
        known_in: Seconds until the API server tells of its containers.
        is_known: Whether it has.
        unsure: Whether an agent was killed while it ran.
    """

    uid: str
    group: str
    name: str
    containers: list[Container]
    gpu: str = ""
    pid: int = 0
    sm: int = 0
    sms: set[int] = set()
    micros: int = 0
    told: int = 0
    sent: int = 0
    memories: dict[str, set[int]] = {}
    looked: int = 0
    surely: set[str] = set()
    known_in: int = 0
    is_known: bool = False
    unsure: bool = False


class PodChurn:
    """The node.

    Args:
        folder: Of its files.
        seed: Of chance.

    Attributes:
        events: So far.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.machine = FakeCgroups(folder / "machine")
        self.events = 0
        self._folder = folder
        self._chance = random.Random(seed)
        self._now = 1000.0
        self._serial = 0
        self._names: dict[str, Names] = {}
        self._given: list[GpuHolder] = []
        self._running: dict[str, Pod] = {}
        #: Gone from the node, and at the API server for so many seconds more.
        self._leaving: list[tuple[int, Pod]] = []
        self._all: dict[str, Pod] = {}
        self._free_pids = list(_PIDS)
        self._start = 5000
        self._old_names: list[str] = []
        self.profiler = self._agent()

    def _agent(self) -> PodProfiler:
        proc = Proc(self.machine.proc)
        made = PodProfiler(
            "n1",
            proc,
            lambda: self._names,
            KeptUsage(self._folder / "usage"),
            holders=lambda: self._given,
            inventory=Inventory,
        )
        made._reader = PodsReader(proc, lambda: self._now)
        return made

    def restart_agent(self) -> None:
        """Kill it, and start another: what came after the last save is lost, and nothing else."""
        self.profiler._reader.close()
        for pod in [*self._running.values(), *(pod for _, pod in self._leaving)]:
            pod.unsure = True
            pod.looked = 0
            pod.surely.clear()
            for one in pod.containers:
                one.known = 0
        self.profiler = self._agent()

    def event(self, most: int = 30) -> None:
        """Let one thing happen."""
        self.events += 1
        pods = list(self._running.values())
        what = self._chance.random()
        if not pods or (what < 0.45 and len(pods) < most):
            self._create()
        elif what < 0.8:
            self._delete(self._chance.choice(pods))
        elif what < 0.9:
            self._restart(self._chance.choice(pods))
        else:
            self._other_process(self._chance.choice(pods))

    async def second(self) -> None:
        """Let a second pass, in which all used something, and let the agent look."""
        self._now += 1.0
        for pod in self._running.values():
            if not pod.is_known and pod.known_in == 0:
                self._tell(pod)
            pod.known_in = max(0, pod.known_in - 1)
            sent = 1000 + pod.containers[0].memory
            pod.sent += sent
            (self.machine.proc / "networks" / f"{pod.group}.dev").write_text(_DEV.format(pod.sent))
            for one in pod.containers:
                self._use(pod, one)
        self.profiler.take(self._look())
        await self.profiler.tick()
        for pod in self._running.values():
            for one in pod.containers if pod.is_known else ():
                one.known += 1
                pod.memories.setdefault(one.name, set()).add(one.memory)
                if one.known > LATE:
                    pod.surely.add(one.name)
        self._leaving = [
            (left - 1, pod) for left, pod in self._leaving if not self._gone(left, pod)
        ]

    def judge(self, found: list[PodUsage]) -> list[str]:
        """Return what is wrong with what an agent says of all pods, ended and running."""
        wrong: list[str] = []
        by_uid: dict[str, PodUsage] = {}
        for one in found:
            if one.uid in by_uid:
                wrong.append(f"{one.pod} {one.uid} is told twice")
            by_uid[one.uid] = one
            if one.uid not in self._all:
                wrong.append(f"nobody knows {one.pod} {one.uid}")
        for uid, pod in self._all.items():
            said = by_uid.get(uid)
            if said is None:
                if pod.surely:
                    wrong.append(f"{pod.name} {uid} is lost")
                continue
            wrong += [f"{pod.name} {uid}: {text}" for text in _compared(pod, said)]
        return wrong

    async def found(self) -> list[PodUsage]:
        """Return what the agent says of all pods."""
        ended: list[PodUsage] = []
        page = await self.profiler.kept.page(0, [])
        while page.ended:
            ended += [one.usage for one in page.ended]
            page = await self.profiler.kept.page(page.ended[-1].seq, [])
        return ended + self.profiler.accounts.running()

    def _create(self) -> None:
        self._serial += 1
        chance = self._chance
        uid = f"{self._serial:08x}-0000-4000-8000-000000000000"
        group = f"{self._serial:032x}" if chance.random() < 0.1 else uid
        if self._old_names and chance.random() < 0.5:
            name = self._old_names.pop()
        else:
            name = f"pod-{self._serial}"
        pod = Pod(uid, group, name, [], known_in=chance.choice([0, 0, 1, 2]))
        self._all[uid] = self._running[uid] = pod
        (self.machine.proc / "networks" / f"{group}.dev").write_text(_DEV.format(0))
        self._container(pod, "")
        for number in range(chance.randint(1, 3)):
            self._container(pod, f"c{number}")
        if chance.random() < 0.6:
            taken = {one.gpu for one in self._running.values()}
            pod.gpu = chance.choice([gpu for gpu in GPUS if gpu not in taken] or [""])
            if pod.gpu:
                self._given.append(GpuHolder(OwningPod("team", name, uid, "c0"), (pod.gpu,)))
                self._gpu_process(pod)

    def _container(self, pod: Pod, name: str) -> None:
        self._serial += 1
        id_ = f"{self._serial:064x}"
        path = f"/kubepods/pod{pod.group}/{id_}"
        folder = self.machine.root / path[1:]
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").touch()
        (folder / "memory.current").write_text(f"{self._serial * 4096}\n")
        (folder / "memory.stat").write_text("inactive_file 0\n")
        one = Container(name, id_, folder, self._serial)
        if name:
            pod.containers.append(one)
        self._process(pod, one)
        self._use(pod, one)

    def _use(self, pod: Pod, one: Container) -> None:
        more = int(10 ** self._chance.uniform(2, 6)) if one.name else 0
        one.micros += more
        pod.micros += more
        if one.known > LATE:
            pod.told += more
        (one.folder / "cpu.stat").write_text(f"usage_usec {one.micros}\nnr_periods 0\n")

    def _process(self, pod: Pod, one: Container) -> int:
        pid = self._free_pids.pop(self._chance.randrange(len(self._free_pids)))
        self._start += 1
        folder = self.machine.proc / str(pid)
        path = one.folder.relative_to(self.machine.root)
        self.machine.process(pid, f"/{path}", namespace=pod.group)
        (folder / "net" / "dev").unlink()
        (folder / "net" / "dev").symlink_to(self.machine.proc / "networks" / f"{pod.group}.dev")
        (folder / "stat").write_text(f"{pid} (x) R" + " 1" * 18 + f" {self._start} 0\n")
        one.pids.append(pid)
        return pid

    def _gpu_process(self, pod: Pod) -> None:
        pod.pid = self._process(pod, pod.containers[0])
        pod.sm = self._chance.randint(1, 99)
        pod.sms.add(pod.sm)

    def _end_process(self, one: Container, pid: int) -> None:
        one.pids.remove(pid)
        shutil.rmtree(self.machine.proc / str(pid))
        self._free_pids.append(pid)
        procs = one.folder / "cgroup.procs"
        procs.write_text("".join(f"{left}\n" for left in one.pids))

    def _other_process(self, pod: Pod) -> None:
        """Let the process on its GPU be another."""
        if pod.pid:
            self._end_process(pod.containers[0], pod.pid)
            self._gpu_process(pod)

    def _restart(self, pod: Pod) -> None:
        """Let a container end, and be started anew: with another id, and the same name."""
        one = pod.containers.pop(self._chance.randrange(len(pod.containers)))
        had_gpu = pod.pid in one.pids
        self._remove(one)
        self._container(pod, one.name)
        if pod.pid and had_gpu:
            pod.containers.insert(0, pod.containers.pop())
            self._gpu_process(pod)
        if pod.is_known and self._chance.random() < 0.5:
            self._tell(pod)
        else:
            pod.is_known, pod.known_in = False, 1

    def _remove(self, one: Container) -> None:
        for pid in list(one.pids):
            self._end_process(one, pid)
        for file in one.folder.iterdir():
            file.write_text("")  # an open file of a group that was removed says nothing more
        shutil.rmtree(one.folder)

    def _tell(self, pod: Pod) -> None:
        pod.is_known = True
        containers = {one.id: one.name for one in pod.containers}
        self._names[pod.group] = Names(pod.uid, containers, pod.name)

    def _delete(self, pod: Pod) -> None:
        del self._running[pod.uid]
        for one in list(pod.containers):
            self._remove(one)
        group = self.machine.root / f"kubepods/pod{pod.group}"
        for sandbox in group.iterdir():
            for text in (sandbox / "cgroup.procs").read_text().split():
                shutil.rmtree(self.machine.proc / text)
                self._free_pids.append(int(text))
        shutil.rmtree(group)
        self._given = [one for one in self._given if one.pod.uid != pod.uid]
        self._leaving.append((self._chance.choice([0, 0, 1, 2]), pod))
        if self._chance.random() < 0.5:
            self._forget(pod)  # the API server knew it first
        self._old_names.append(pod.name)

    def _gone(self, left: int, pod: Pod) -> bool:
        if left == 0:
            self._forget(pod)
        return left == 0

    def _forget(self, pod: Pod) -> None:
        if (known := self._names.get(pod.group)) is not None and known.uid == pod.uid:
            del self._names[pod.group]

    def _look(self) -> GpuLook:
        now = time.monotonic()
        samples = {}
        for pod in self._running.values():
            if pod.gpu and pod.pid:
                process = ProcessSample(pod.pid, float(pod.sm), 0.0, pod.sm * MIB)
                samples[pod.gpu] = GpuSample(now, float(pod.sm), processes=(process,))
                pod.looked += "c0" in pod.surely
        return GpuLook(now, 1, {}, {}, samples=samples)


def _compared(pod: Pod, said: PodUsage) -> list[str]:
    """Return where what is said of a pod is not what it did."""
    wrong = []
    if said.pod != pod.name:
        wrong.append(f"is called {said.pod}")
    for name, digests in said.containers.items():
        most = digests[usage.MEMORY_MIB].max * 256 if usage.MEMORY_MIB in digests else None
        if most is not None and round(most) not in pod.memories.get(name, ()):
            wrong.append(f"{name} held {pod.memories.get(name)} pages, not {most}")
    if not pod.surely <= said.containers.keys() <= pod.memories.keys():
        wrong.append(f"has containers {set(pod.memories)}, not {set(said.containers)}")
    cores = said.metrics.get(usage.CPU_CORES)
    micros = cores.mean * cores.seconds * 1e6 if cores is not None else 0.0
    if not (0 if pod.unsure else pod.told) - 100 <= micros <= pod.micros + 100:
        wrong.append(f"used {pod.told} to {pod.micros} us of a processor, not {micros:.0f}")
    sent = said.metrics.get(usage.NET_TX_MIB_S)
    if sent is not None and sent.mean * sent.seconds * MIB > pod.sent + 100:
        wrong.append(f"sent {pod.sent} bytes, not {sent.mean * sent.seconds * MIB:.0f}")
    gpu = said.metrics.get(usage.GPU_UTIL)
    if pod.looked and (gpu is None or not gpu.max):
        wrong.append(f"used its GPU in {pod.looked} looks, and none is told")
    if gpu is not None and round(gpu.max) not in pod.sms | {0}:
        wrong.append(f"used {pod.sms} % of its GPU, not {gpu.max} %")
    return wrong
