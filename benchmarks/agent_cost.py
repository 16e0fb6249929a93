"""What the whole agent costs on a full node: processor time, memory and writes, as a process.

    python benchmarks/agent_cost.py [--pods 110] [--containers 3] [--seconds 600] [--parts] [--json]

The agent is the command `alnair agent`, with device plugins, vGPU server and profiler, at a real
API server. Its node is made up: eight fake GPUs with three processes each, control groups of as
many pods as are wished with a process in each, 24 of which hold slices, and a kubelet on sockets
that asks nothing. Its page of metrics is read every 15 s. Memory is told a minute after the start
and at the end, as RSS and as what is its own. Of processor time that of NVML's calls on the fake is
a part. With --parts the agent says what its parts take, and how long cycles of the profiler are:
in wall time, and without the time in which its threads waited for a processor.
Needs Linux, root, and a C compiler.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import NAMESPACES, NODES, PODS
from alnair.local.components.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import cgroups
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.processes.agent.admin_socket import Add, ask
from lib.left_behind import also, ends_when_told, scratch
from lib.machine import describe
from lib.pod_groups import Names, pods

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from kit.kubelet_sockets import Kubelet
from native import build
from native.fake import Fake

NODE = "measured"
GPUS, PROCESSES = 8, 3
MOST_CPU_PERCENT = 4.0
MOST_RSS_MB = 120.0
MOST_P99_MS = 100.0
SCRAPE_EVERY = 15.0
#: Percent of a core below which a part is not told by itself.
LEAST_SHARE = 0.005
_NUMBER = re.compile(r"^(alnair_profiler_\w+?)(?:_total)? ([\d.e+-]+)$", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=110)
    parser.add_argument("--containers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--parts", action="store_true", help="also what each part takes")
    parser.add_argument("--json", action="store_true", help="only the line of JSON")
    options = parser.parse_args()
    if os.geteuid():
        print("skipped: control groups can only be made by root", file=sys.stderr)
        return 0
    build.libraries()
    with scratch("agent-cost") as folder, Fake("h100", gpus=GPUS) as fake:
        also(folder, fake.state.parent)
        try:
            result = asyncio.run(measured(folder, fake, options))
        except asyncio.CancelledError:
            return 128 + signal.SIGTERM
    met = result["cpu_pct"] < MOST_CPU_PERCENT and result["rss_mb"] < MOST_RSS_MB
    if not options.json:
        print(
            f"the agent with {options.pods} pods of {options.containers} containers, {GPUS} GPUs: "
            f"{result['cpu_pct']} % of a core (below {MOST_CPU_PERCENT}), {result['rss_mb']} MB at "
            f"the end (below {MOST_RSS_MB}), {result['own_mb']} MB of it its own, "
            f"{result['rss_first_mb']} MB after a minute, {result['threads']} threads; profiler: "
            f"{result['profiler']}; {describe()}",
            *(told(result["parts"]) if options.parts else ()),
            sep="\n",
            file=sys.stderr,
        )
    print(json.dumps({"benchmark": "agent_cost", **result, "met": met, "machine": describe()}))
    return 0


async def measured(folder: Path, fake: Fake, options: argparse.Namespace) -> dict[str, Any]:
    ends_when_told()
    cluster = LocalCluster("agent-cost", components=list(BARE), root=folder)
    kubelet = Kubelet(folder / "kubelet")
    try:
        await cluster.up()
        async with Client(client_config.load(cluster.kubeconfig())) as client:
            uids = [uid async for uid in api_pods(client, options.pods)]
            with pods(uids, options.containers) as names:
                await tell(client, names)
                await kubelet.start()
                with (
                    gpu_processes(fake, names),
                    agent(folder, fake, cluster, with_parts=options.parts) as process,
                ):
                    await asyncio.to_thread(add_slices, folder, fake, names)
                    return await costs(folder, process, options)
    finally:
        await kubelet.die()
        await cluster.down()


async def api_pods(client: Client, count: int) -> Any:
    """Make a node and its pods at the API server; yields their uids."""
    await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    await client.create(
        NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    )
    for number in range(count):
        spec = {
            "nodeName": NODE,
            "automountServiceAccountToken": False,
            "containers": [{"name": f"c{n}", "image": "none"} for n in range(3)],
        }
        metadata = {"name": f"pod-{number}", "namespace": "team"}
        made = await client.create(
            PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )
        yield made["metadata"]["uid"]


async def tell(client: Client, names: dict[str, Names]) -> None:
    """Let the API server know the containers, as a kubelet does."""
    for pod in names.values():
        statuses = [
            {
                "name": name,
                "containerID": f"containerd://{id_}",
                "image": "none",
                "imageID": "none",
                "ready": True,
                "restartCount": 0,
                "state": {"running": {}},
            }
            for id_, name in pod.containers.items()
        ]
        await client.merge_patch(
            PODS,
            pod.name,
            {"status": {"phase": "Running", "containerStatuses": statuses}},
            "team",
            subresource="status",
        )


@contextmanager
def gpu_processes(fake: Fake, names: dict[str, Names]) -> Iterator[None]:
    """Three processes on each GPU, the first of which computes; each in a pod's first container."""
    program = build.client("hold", "-l:libcuda.so.1")
    groups = iter(list(names.values())[: GPUS * PROCESSES])
    root = f"alnair-bench-{os.getpid()}"
    with ExitStack() as stack:
        for gpu in range(GPUS):
            for number in range(PROCESSES):
                environment = fake.environment(
                    f"{gpu}-{number}", CUDA_VISIBLE_DEVICES=f"GPU-{fake.uuid(gpu)}"
                )
                kernel = () if number else ("ns_50000000",)
                process = stack.enter_context(
                    build.start(program, 64, *kernel, environment=environment)
                )
                stack.callback(process.kill)
                assert process.stdout is not None
                assert process.stdout.readline() == "held\n"
                pod = next(groups)
                group = f"{root}/kubepods/pod{pod.uid}/{next(iter(pod.containers))}"
                for hierarchy in cgroups.hierarchies():
                    (hierarchy / group / "cgroup.procs").write_text(str(process.pid))
        yield


@contextmanager
def agent(
    folder: Path, fake: Fake, cluster: LocalCluster, *, with_parts: bool
) -> Iterator[psutil.Process]:
    log = folder / "agent.log"
    program = [str(Path(sys.executable).with_name("alnair"))]
    if with_parts:
        accounted = "from lib.accounted_agent import main; main()"
        program = [sys.executable, "-c", accounted, str(folder / "parts")]
    command = [
        *(*program, "agent", "--folder", str(folder / "agent")),
        *("--metrics", "127.0.0.1:0", "--node", NODE, "--kubelet", str(folder / "kubelet")),
        *("--kubeconfig", str(cluster.kubeconfig()), "--driver-libraries", str(build.LIBRARIES)),
    ]
    # That of this folder, and of another checkout that is to be measured.
    path = ":".join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parent)])
    environment = {**os.environ, **fake.environment("agent"), "PYTHONPATH": path}
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process,
    ):
        try:
            until = time.monotonic() + 60
            while "ready:" not in log.read_text():
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"the agent does not serve:\n{log.read_text()}")
                time.sleep(0.1)
            yield psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            print(log.read_text()[-2000:], file=sys.stderr)


def add_slices(folder: Path, fake: Fake, names: dict[str, Names]) -> None:
    for number, pod in enumerate(list(names.values())[: GPUS * PROCESSES]):
        id_, name = next(iter(pod.containers.items()))
        share = Share(f"GPU-{fake.uuid(number // PROCESSES)}", 8000, 30)
        owner = OwningPod("team", pod.name, pod.uid, name)
        slices = ContainerSlices(f"slice-{number}", ContainerMatch(container=id_), (share,), owner)
        ask(folder / "agent", Add(slices))


async def costs(
    folder: Path, process: psutil.Process, options: argparse.Namespace
) -> dict[str, Any]:
    ready = re.search(r"metrics (\S+)", (folder / "agent.log").read_text())
    assert ready is not None
    url, seconds = ready[1], options.seconds
    await asyncio.sleep(20)
    before_parts = await parts(folder, process) if options.parts else {}
    async with aiohttp.ClientSession() as session:
        first, page = 0.0, ""
        before, began = sum(process.cpu_times()[:2]), time.monotonic()
        while (gone := time.monotonic() - began) < seconds:
            async with session.get(url) as answer:
                page = await answer.text()
            if gone >= 60 and not first:
                first = process.memory_info().rss
            await asyncio.sleep(min(SCRAPE_EVERY, max(0.1, seconds - gone)))
        spent = sum(process.cpu_times()[:2]) - before
        gone = time.monotonic() - began
    memory = process.memory_full_info()
    result = {
        "cpu_pct": round(100 * spent / gone, 2),
        "rss_mb": round(memory.rss / 1e6, 1),
        "rss_first_mb": round(first / 1e6, 1),
        "own_mb": round(memory.uss / 1e6, 1),
        "threads": process.num_threads(),
        "profiler": {name: float(value) for name, value in _NUMBER.findall(page)},
        "seconds": round(gone),
    }
    if options.parts:
        result["parts"] = since(before_parts, await parts(folder, process), gone)
    return result


async def parts(folder: Path, process: psutil.Process) -> dict[str, Any]:
    """What the agent's parts have taken so far; see `lib.accounted_agent`."""
    file = folder / "parts"
    file.unlink(missing_ok=True)
    process.send_signal(signal.SIGUSR1)
    async with asyncio.timeout(10):
        while not file.exists():  # noqa: ASYNC110 (another process writes it)
            await asyncio.sleep(0.02)
    return dict(json.loads(file.read_text()))


def since(before: dict[str, Any], after: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What parts took in a time: percent of a core and calls a second; and how long cycles were."""
    found = {}
    for name, (spent, calls) in after["parts"].items():
        then, calls_then = before["parts"].get(name, (0.0, 0))
        share = round(100 * (spent - then) / seconds, 3)
        if share >= LEAST_SHARE:
            found[name] = (share, round((calls - calls_then) / seconds, 2))
    rest = 100 * (after["process"] - before["process"]) / seconds
    shares = dict(sorted(found.items(), key=lambda one: -one[1][0]))
    shares["the rest"] = (round(rest - sum(share for share, _ in found.values()), 3), 0.0)
    cycles = after["cycles"][len(before["cycles"]) :]
    return {
        "shares": shares,
        "cycle_p50_ms": _quantile([wall for wall, _ in cycles], 50),
        "cycle_p99_ms": _quantile([wall for wall, _ in cycles], 99),
        "cycle_own_p99_ms": _quantile([wall - waited for wall, waited in cycles], 99),
    }


def told(found: dict[str, Any]) -> Iterator[str]:
    """Lines for people."""
    for name, (share, calls) in found["shares"].items():
        yield f"  {share:6.3f} %  {calls:6.2f} a second  {name}"
    yield (
        f"  a cycle of the profiler takes {found['cycle_p50_ms']} ms, p99 {found['cycle_p99_ms']} "
        f"ms, {found['cycle_own_p99_ms']} ms without waiting for a processor (below {MOST_P99_MS})"
    )


def _quantile(values: list[float], percent: int) -> float:
    return round(1000 * statistics.quantiles(values, n=100)[percent - 1], 1)


if __name__ == "__main__":
    sys.exit(main())
