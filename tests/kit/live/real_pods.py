"""Pods on the real node of a local cluster: made, waited for, read, removed."""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, NotFound
from alnair.kube.resources import EVENTS, PODS, Manifest
from alnair.local.real_node import images
from alnair.model import names
from kit.live.pauses import pause

NAMESPACE = "default"


def sliced(memory_mib: int, compute: int = 0) -> dict[str, str]:
    """The limits of a container with a slice."""
    share = {names.VGPU_COMPUTE: str(compute)} if compute else {}
    return {names.VGPU_MEMORY: str(memory_mib), **share}


def container(
    image: str, *command: str, name: str = "main", limits: dict[str, str] | None = None, **more: Any
) -> Manifest:
    """A container of an image of the node."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "Never",
        "command": list(command),
        "resources": {"limits": limits or {}},
        **more,
    }


def python(program: str, **options: Any) -> Manifest:
    """A container that runs a few lines of Python."""
    return container(images.PYTHON, "python3", "-uc", program, **options)


def busy(*arguments: object, **options: Any) -> Manifest:
    """A container that keeps its GPU busy, with a report twice a second, until it is ended."""
    common = ("--seconds", 3600, "--every", 0.5, "--kernel-us", 1000)
    return container(images.CUDA, "cuda_load", *map(str, (*common, *arguments)), **options)


def pod(
    name: str,
    *containers: Manifest,
    scheduler: str = names.SCHEDULER,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Manifest:
    """A pod for the real node that is not restarted."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations or {}},
        "spec": {
            "schedulerName": scheduler,
            "restartPolicy": "Never",
            "nodeSelector": {names.REAL_NODE: "true"},
            "terminationGracePeriodSeconds": 0,
            "containers": list(containers),
            **spec,
        },
    }


async def until(holds: Callable[[], Awaitable[bool]], what: str, seconds: float = 60) -> None:
    """Waits for something that the cluster does in its own time."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            while True:
                if await holds():
                    return
                await asyncio.sleep(pause(time.monotonic() - began))
    except TimeoutError:
        pytest.fail(f"not within {seconds:g} s: {what}")


class RealPods:
    """The pods of a test, removed with it.

    Args:
        client: Of an administrator.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._made: list[str] = []

    async def create(self, manifest: Manifest) -> Manifest:
        """Make a pod."""
        self._made.append(manifest["metadata"]["name"])
        return await self.client.create(PODS, manifest)

    async def get(self, name: str) -> Manifest:
        """A pod as it is now."""
        return await self.client.get(PODS, name, NAMESPACE)

    async def start(self, manifest: Manifest) -> Manifest:
        """Make a pod and wait until it runs."""
        await self.create(manifest)
        return await self.reached(manifest["metadata"]["name"], "Running")

    async def reached(self, name: str, *phases: str, seconds: float = 60) -> Manifest:
        """Wait until a pod is in one of these phases, with all containers ready if it runs."""
        found: Manifest = {}

        async def is_there() -> bool:
            nonlocal found
            found = await self.get(name)
            phase = found["status"]["phase"]
            if phase == "Running":
                listed = found["status"].get("containerStatuses", [])
                return phase in phases and all(one["ready"] for one in listed)
            return phase in phases

        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                while True:
                    if await is_there():
                        return found
                    await asyncio.sleep(pause(time.monotonic() - began))
        except TimeoutError:
            said = [event["message"] for event in await self.events(found)]
            shown = json.dumps(found.get("status"))
            pytest.fail(f"{name} is not {' or '.join(phases)}: {shown} {said}")

    async def log(self, name: str, container: str = "main", *, previous: bool = False) -> str:
        """What a container wrote: the API server asks the kubelet for it."""
        query = {"container": container, "previous": str(previous).lower()}
        path = PODS.item(name, NAMESPACE, "log")
        return without_waits((await self.client.raw("GET", path, query=query)).decode())

    async def says(self, name: str, text: str, container: str = "main") -> str:
        """Wait until a container has written something, and return all that it wrote."""
        said = ""

        async def has_said() -> bool:
            nonlocal said
            try:  # its phase first: it may say it and then fail
                phase = (await self.get(name))["status"]["phase"]
                said = await self.log(name, container)
            except ApiError:  # also of a pod from a file that the kubelet has not told of yet
                return False
            assert text in said or phase != "Failed", said
            return text in said

        await until(has_said, f"{name} says {text!r}")
        return said

    async def ended(self, name: str, container: str = "main") -> str:
        """Wait for the end of a pod, which must be a good one, and return what it wrote."""
        found = await self.reached(name, "Succeeded", "Failed")
        text = await self.log(name, container)
        assert found["status"]["phase"] == "Succeeded", text
        return text

    async def failed(self, name: str, container: str = "main") -> str:
        """Wait for the end of a pod, which must be a bad one, and return what it wrote."""
        found = await self.reached(name, "Succeeded", "Failed")
        text = await self.log(name, container)
        assert found["status"]["phase"] == "Failed", text
        return text

    async def gone(self, name: str, seconds: float = 60) -> None:
        """Wait until there is no such pod any more."""

        async def is_gone() -> bool:
            try:
                await self.get(name)
            except NotFound:
                return True
            return False

        await until(is_gone, f"{name} is gone", seconds)

    async def delete(self, *which: str) -> None:
        """Remove pods, and wait until they are gone."""
        for name in which:
            try:
                await self.client.delete(PODS, name, NAMESPACE, grace_seconds=0)
            except NotFound:
                continue
        for name in which:
            await self.gone(name)

    async def events(self, found: Manifest) -> list[Manifest]:
        """The events of a pod that is there, or was."""
        if not found:
            return []
        selector = f"involvedObject.uid={found['metadata']['uid']}"
        return (await self.client.list(EVENTS, NAMESPACE, field_selector=selector)).items

    async def event(self, found: Manifest, reason: str, seconds: float = 30) -> Manifest:
        """Wait for an event of a pod that is there, or was."""
        seen: list[Manifest] = []

        async def is_there() -> bool:
            seen[:] = await self.events(found)
            return any(one["reason"] == reason for one in seen)

        try:
            await until(is_there, f"an event {reason}", seconds)
        except BaseException:
            print("seen:", [(one["reason"], one["message"]) for one in seen])
            raise
        return next(one for one in seen if one["reason"] == reason)

    async def clear(self) -> None:
        """Remove all pods of the test."""
        await self.delete(*self._made)
        self._made.clear()


def assigned(found: Manifest) -> dict[str, list[dict[str, Any]]]:
    """The GPUs of each container, by the pod's annotation."""
    text = found["metadata"].get("annotations", {}).get(names.GPU_ASSIGNMENT)
    assert text, f"{found['metadata']['name']} has no assignment"
    containers: dict[str, list[dict[str, Any]]] = json.loads(text)["containers"]
    return containers


def gpu(found: Manifest, name: str = "main") -> str:
    """The one GPU that a container was given."""
    (part,) = assigned(found)[name]
    return str(part["uuid"])


def without_waits(text: str) -> str:
    """What a program wrote, without our library's word on an agent that is slow to answer."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("alnair-vgpu: waiting for "))


def reports(text: str) -> list[dict[str, Any]]:
    """The lines of `cuda_load`; one that is written just now is left out."""
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]


def shares(
    logs: Iterable[str],
    kernel_seconds: float = 0.001,
    after: float = 0.0,
    before: float = math.inf,
) -> tuple[float, list[float]]:
    """The parts of a GPU's time that programs had over the same seconds.

    Args:
        logs: What each wrote.
        kernel_seconds: What one kernel takes.
        after: Unix seconds from which on it counts.
        before: Unix seconds up to which it counts.

    Returns:
        How many seconds these were, and each one's part of them.
    """
    lines = [[one for one in reports(text) if one["time"] <= before] for text in logs]
    if not all(len(one) > 2 for one in lines):
        return 0.0, []
    # The first seconds, in which programs warm up one after the other, are not the same for all.
    begin = max(after, *(one[1]["time"] for one in lines))
    end = min(one[-1]["time"] for one in lines)
    return end - begin, [_part(one, begin, end) * kernel_seconds for one in lines]


def _part(lines: Sequence[dict[str, Any]], begin: float, end: float) -> float:
    """Kernels a second between two moments, by the lines that are nearest."""
    first = min(lines, key=lambda line: abs(line["time"] - begin))
    last = min(lines, key=lambda line: abs(line["time"] - end))
    if last["time"] <= first["time"]:
        return 0.0
    return float((last["kernels"] - first["kernels"]) / (last["time"] - first["time"]))
