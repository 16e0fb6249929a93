"""How long a pod with a slice takes to start on a real node, and what the agent costs there.

    python benchmarks/real_node_start.py [--pods 50] [--seconds 30] [--json]

Pods are made one after the other, so that what each cost is told apart: from the request to the
binding by a watch of this process (our scheduler, with what the API server does), the plugin's
calls by the agent's /metrics, containerd's by the kubelet's /metrics; the rest is the kubelet's.
All pods stay: nine in ten sleep, the others launch a kernel now and then. Then the agent's memory
and its part of a core are measured, and the kubelet is started again a few times: from the moment
its socket is there to the last registration. Needs Linux, root and what a real node needs; all of
it shares the machine's cores.
"""

import argparse
import asyncio
import datetime as dt
import json
import os
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import NODES, PODS
from alnair.local.components import supervision
from alnair.local.components.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.local.layout import Layout
from alnair.local.real_node import images, programs, requirements
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.real_node.settings import AGENT_PORT, NAME
from alnair.local.report import NO_REPORT
from alnair.model import names
from lib.machine import describe

GPUS, MODEL = 8, "h100"
KUBELET_STARTS = 5
#: Targets: milliseconds, MB, percent of a core, seconds.
ALLOCATE_P99_MS, OURS_P50_MS, RSS_MB, CPU_PCT, REGISTERED_S = 50.0, 300.0, 120.0, 4.0, 2.0
_CALL = re.compile(
    r'^alnair_device_plugin_call_seconds_(bucket|sum)\{(?:le="([^"]+)",)?method="(\w+)".*\} (\S+)$',
    re.MULTILINE,
)
_RUNTIME = re.compile(
    r"^kubelet_runtime_operations_duration_seconds_sum"
    r'\{operation_type="(run_podsandbox|create_container|start_container)"\} (\S+)$',
    re.MULTILINE,
)
_REGISTERED = re.compile(r"^(\S+ \S+),(\d+) INFO .* is registered with the kubelet$", re.MULTILINE)
#: Uses its slice a little: a kernel of a millisecond, once a second.
_LIGHT = """
import ctypes, sys, time
sys.path.insert(0, "/usr/local/bin")
from cuda_load import KERNEL
cuda = ctypes.CDLL("libcuda.so.1")
context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
assert not cuda.cuModuleLoadData(ctypes.byref(module), KERNEL.format(ns=1000000).encode())
assert not cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"ns_1000000")
while True:
    assert not cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    assert not cuda.cuCtxSynchronize()
    time.sleep(1)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0, help="of measuring the agent")
    parser.add_argument("--json", action="store_true", help="only the line of JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="alnair-bench-") as folder:
        reason = requirements.refusal(Layout(Path(folder), "node"), os.environ)
        if reason is not None:
            print(f"skipped: no real node can run here: {reason}", file=sys.stderr)
            return 0
        result = asyncio.run(measure(Path(folder), options.pods, options.seconds))
    if not options.json:
        split = ", ".join(f"{part} {ms} ms" for part, ms in result["p50_ms"].items())
        print(
            f"pod created to container running, p50: {split}; Allocate p99 at most "
            f"{result['allocate_p99_ms']} ms (goal {ALLOCATE_P99_MS:g}); agent with "
            f"{options.pods} containers {result['agent_rss_mb']} MB, {result['agent_cpu_pct']} % "
            f"of a core (goals {RSS_MB:g}, {CPU_PCT:g}); registered after "
            f"{result['registered_s']} s (goal {REGISTERED_S:g}); {describe()}",
            file=sys.stderr,
        )
    met = (
        result["allocate_p99_ms"] < ALLOCATE_P99_MS
        and result["p50_ms"]["ours"] < OURS_P50_MS
        and result["agent_rss_mb"] < RSS_MB
        and result["agent_cpu_pct"] < CPU_PCT
        and max(result["registered_s"]) < REGISTERED_S
    )
    print(json.dumps({"benchmark": "real_node_start", **result, "met": met, "machine": describe()}))
    return 0


async def measure(folder: Path, pods: int, seconds: float) -> dict[str, Any]:
    """Bring a cluster up, measure, and take it down."""
    wish = RealNodeWish(wanted=True, gpus=GPUS, gpu_model=MODEL)
    components = [*BARE, "kube-controller-manager"]
    cluster = LocalCluster(
        "node", components=components, scheduler=True, real_node=wish, root=folder
    )
    try:
        await cluster.up()
        async with (
            Client(client_config.load(cluster.kubeconfig())) as client,
            aiohttp.ClientSession() as session,
        ):
            await _described(client)
            found = await _starts(cluster, client, session, pods)
            found |= await _agent(cluster, seconds)
            return {"pods": pods, **found, "registered_s": await _registrations(cluster)}
    finally:
        await cluster.down()


async def _described(client: Client) -> None:
    async with asyncio.timeout(60):
        while True:
            status = (await client.get(NODES, NAME))["status"]
            offered = status.get("allocatable", {})
            if all(offered.get(name, "0") != "0" for name in names.GPU_RESOURCES):
                return
            await asyncio.sleep(0.1)


async def _starts(
    cluster: LocalCluster, client: Client, session: aiohttp.ClientSession, pods: int
) -> dict[str, Any]:
    """Start pods one after the other; return milliseconds of each part."""
    node = await client.get(NODES, NAME)
    addresses = {one["type"]: one["address"] for one in node["status"]["addresses"]}
    url = f"http://{addresses['InternalIP']}:{AGENT_PORT}/metrics"
    parts: dict[str, list[float]] = {}
    before = await _figures(client, session, url)
    first = before
    for number in range(pods):
        seen = await _start(client, number)
        after = await _figures(client, session, url)
        spent = {name: after[name] - before.get(name, 0.0) for name in after}
        before = after
        took = {
            "total": seen["running"],
            "schedule": seen["bound"],
            **{name: spent.get(name, 0.0) for name in ("allocate", "prefer", "prepare")},
            "containerd": spent["containerd"],
        }
        took["ours"] = sum(took[name] for name in ("schedule", "allocate", "prefer", "prepare"))
        took["kubelet"] = took["total"] - took["ours"] - took["containerd"]
        for name, value in took.items():
            parts.setdefault(name, []).append(1000 * value)
    return {
        "p50_ms": {name: round(statistics.median(found), 2) for name, found in parts.items()},
        "max_ms": {name: round(max(found), 2) for name, found in parts.items()},
        "allocate_p99_ms": 1000 * _p99(first, before),
    }


async def _start(client: Client, number: int) -> dict[str, float]:
    """Make a pod; return after how many seconds it was bound, and its container ran."""
    light = number % 10 == 9
    name, began = f"pod-{number}", time.perf_counter()
    limits = {names.VGPU_MEMORY: "2000", names.VGPU_COMPUTE: "5"}
    spec = {
        "schedulerName": names.SCHEDULER,
        "nodeSelector": {names.REAL_NODE: "true"},
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "main",
                "image": images.PYTHON if light else images.CUDA,
                "imagePullPolicy": "Never",
                "command": ["python3", "-c", _LIGHT] if light else ["sleep", "100000"],
                "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}, "limits": limits},
            }
        ],
    }
    metadata = {"name": name, "namespace": "default"}
    version = (await client.list(PODS, "default")).resource_version
    seen: dict[str, float] = {}
    watch = client.watch(PODS, resource_version=version, namespace="default")
    asked = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    began = time.perf_counter()
    creating = asyncio.create_task(client.create(PODS, asked))
    async with asyncio.timeout(60):
        async for event in watch:
            pod = event.object
            if pod["metadata"]["name"] != name:
                continue
            now = time.perf_counter() - began
            if pod["spec"].get("nodeName"):
                seen.setdefault("bound", now)
            states = [one["state"] for one in pod["status"].get("containerStatuses") or ()]
            if states and all("running" in state for state in states):
                seen["running"] = now
                break
    await creating
    return seen


async def _figures(client: Client, session: aiohttp.ClientSession, url: str) -> dict[str, float]:
    """Sums of seconds by part, and how many calls of Allocate took at most so many seconds."""
    found = dict.fromkeys(("allocate", "prefer", "prepare", "containerd"), 0.0)
    methods = {
        "Allocate": "allocate",
        "GetPreferredAllocation": "prefer",
        "PreStartContainer": "prepare",
    }
    async with session.get(url) as answer:
        text = await answer.text()
    for kind, bound, method, value in _CALL.findall(text):
        if kind == "sum" and method in methods:
            found[methods[method]] += float(value)
        elif kind == "bucket" and method == "Allocate":
            found[f"le {bound}"] = found.get(f"le {bound}", 0.0) + float(value)
    text = (await client.raw("GET", f"/api/v1/nodes/{NAME}/proxy/metrics")).decode()
    found["containerd"] = sum(float(value) for _, value in _RUNTIME.findall(text))
    return found


def _p99(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """The bound below which 99 % of the calls of Allocate are."""
    counts = {
        float(name.removeprefix("le ")): count - before.get(name, 0.0)
        for name, count in after.items()
        if name.startswith("le ")
    }
    return next(bound for bound in sorted(counts) if counts[bound] >= 0.99 * max(counts.values()))


async def _agent(cluster: LocalCluster, seconds: float) -> dict[str, Any]:
    """What the agent costs."""
    process = cluster.running()[programs.AGENT].process
    await asyncio.sleep(5)  # what came with the last pods is done
    used, began = sum(process.cpu_times()[:2]), time.perf_counter()
    await asyncio.sleep(seconds)
    spent = sum(process.cpu_times()[:2]) - used
    return {
        "agent_rss_mb": round(_own_rss(process) / 1e6, 1),
        "agent_cpu_pct": round(100 * spent / (time.perf_counter() - began), 2),
    }


def _own_rss(process: psutil.Process) -> int:
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


async def _registrations(cluster: LocalCluster) -> list[float]:
    """Seconds from a kubelet's socket to the last registration, of several starts."""
    node, found = cluster.real_node(), []
    assert node is not None
    wanted = next(one for one in node.components() if one.name == "kubelet")
    log = cluster.layout.log(programs.AGENT)
    for _ in range(KUBELET_STARTS):
        told = len(_REGISTERED.findall(log.read_text()))
        await cluster.stop("kubelet", signal.SIGKILL)
        await supervision.ensure(wanted, cluster.layout, NO_REPORT)
        async with asyncio.timeout(60):
            while (took := _registered_after(cluster, told)) is None:  # noqa: ASYNC110 (a log)
                await asyncio.sleep(0.05)
        found.append(took)
    return found


def _registered_after(cluster: LocalCluster, told: int) -> float | None:
    """Seconds from the kubelet's socket to the last registration; None: not all are there."""
    times = _REGISTERED.findall(cluster.layout.log(programs.AGENT).read_text())
    if len(times) < told + 2:
        return None
    text, milliseconds = times[-1]
    last = dt.datetime.fromisoformat(text).timestamp() + int(milliseconds) / 1000
    pid = cluster.running()["kubelet"].pid
    root = Path(f"/proc/{pid}/root")
    there = (root / "var/lib/kubelet/device-plugins/kubelet.sock").stat()
    return round(last - there.st_ctime, 3)


if __name__ == "__main__":
    sys.exit(main())
