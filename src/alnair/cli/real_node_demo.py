"""`alnair demo --real-node`: two pods share one GPU, and what each of them got is looked at."""

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import typer

from alnair.model import names

if TYPE_CHECKING:
    from alnair.kube.client import Client
    from alnair.kube.resources import Manifest
    from alnair.local.report import ProgressReport

#: The example is a part of the repository and of no package, as the fake GPU is.
EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "03-share-a-gpu" / "pods.yaml"
NAMESPACE: Final = "default"
#: Seconds that pods have to start, and to write what is looked at.
_PATIENCE: Final = 180.0
#: Reports of each program that count: one a second, when both have begun.
_REPORTS: Final = 6
#: Points of the GPU's time above its share at which a program was not held to it: on a machine
#: with much else to do the fake GPU's clock slips by some.
_MARGIN: Final = 15.0


class DemoError(Exception):
    """The example did not run; says what happened instead."""


class Tenant(msgspec.Struct, frozen=True):
    """A pod of the example, and what it got.

    Attributes:
        name: The pod's.
        memory_mib: MiB that it asked for,
        compute: and percent.
        gpu: UUID of the GPU that it was assigned.
        shown_mib: MiB that CUDA shows it as the whole GPU.
        percent: Of the GPU's time that its kernels took.
        refused: What CUDA answered when it asked for more memory than it has; "" if it did not.
    """

    name: str
    memory_mib: int
    compute: int
    gpu: str
    shown_mib: int
    percent: float
    refused: str

    @property
    def problem(self) -> str:
        """What is not as it should be, or ""."""
        if self.shown_mib != self.memory_mib:
            return f"{self.name} sees {self.shown_mib} MiB and not {self.memory_mib}"
        if self.percent > self.compute + _MARGIN:
            return f"{self.name} had {self.percent:.1f} % of the GPU's time"
        return ""


async def share(client: "Client", report: "ProgressReport") -> list[Tenant]:
    """Run the example, anew if it runs already, and look at what each pod got.

    Raises:
        DemoError: A pod does not run.
    """
    import yaml

    from alnair.kube.errors import NotFound
    from alnair.kube.resources import PODS

    manifests = list(yaml.safe_load_all(EXAMPLE.read_text()))
    for manifest in manifests:
        name = manifest["metadata"]["name"]
        while True:
            try:
                await client.delete(PODS, name, NAMESPACE)
            except NotFound:
                break
            await asyncio.sleep(0.2)
    for manifest in manifests:
        report.step(f"creating pod {manifest['metadata']['name']}")
        await client.create(PODS, manifest, NAMESPACE)
    until = time.monotonic() + _PATIENCE
    found = [await _running(client, m["metadata"]["name"], until) for m in manifests]
    report.step(f"both run; looking at {_REPORTS} seconds of them")
    seen = [len(_reports(await _log(client, pod))) for pod in found]
    return [
        await _tenant(client, pod, before, until) for pod, before in zip(found, seen, strict=True)
    ]


async def _running(client: "Client", name: str, until: float) -> "Manifest":
    from alnair.kube.resources import PODS

    while True:
        pod = await client.get(PODS, name, NAMESPACE)
        phase = pod["status"]["phase"]
        if phase == "Running":
            return pod
        if phase != "Pending" or time.monotonic() > until:
            raise DemoError(
                f"pod {name} is {phase} and not Running:"
                f" 'kubectl describe pod {name}' says why: {json.dumps(pod['status'])}"
            )
        await asyncio.sleep(0.2)


async def _log(client: "Client", pod: "Manifest") -> str:
    from alnair.kube.errors import ApiError
    from alnair.kube.resources import PODS

    try:
        path = PODS.item(pod["metadata"]["name"], NAMESPACE, "log")
        return (await client.raw("GET", path)).decode()
    except ApiError:
        return ""  # its container is about to start


def _reports(text: str) -> list[dict[str, float]]:
    """The lines of `cuda_load`, which are JSON; one that is being written is left out."""
    return [json.loads(line) for line in text.splitlines() if line[:1] + line[-1:] == "{}"]


async def _tenant(client: "Client", pod: "Manifest", before: int, until: float) -> Tenant:
    name = pod["metadata"]["name"]
    while True:
        text = await _log(client, pod)
        lines = _reports(text)
        # The first one after both had begun may reach into the time before that.
        counted = lines[before + 1 :][:_REPORTS]
        if len(counted) == _REPORTS:
            break
        if time.monotonic() > until:
            raise DemoError(f"pod {name} does not go on: 'kubectl logs {name}' has what it said")
        await asyncio.sleep(0.5)
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    assigned = json.loads(pod["metadata"]["annotations"][names.GPU_ASSIGNMENT])
    refused = [line for line in text.splitlines() if "CUDA_ERROR_OUT_OF_MEMORY" in line]
    return Tenant(
        name=name,
        memory_mib=int(limits[names.VGPU_MEMORY]),
        compute=int(limits[names.VGPU_COMPUTE]),
        gpu=assigned["containers"]["main"][0]["uuid"],
        shown_mib=int(counted[-1]["total_mib"]),
        percent=sum(line["percent"] for line in counted) / len(counted),
        refused=refused[0] if refused else "",
    )


def show(tenants: list[Tenant]) -> str:
    """Print what each got; return what is not as it should be, or ""."""
    form = "{:<10} {:>10} {:>5}  {:<41} {:>9} {:>9}"
    typer.echo(form.format("pod", "asked: MiB", "%", "GPU", "sees: MiB", "had: %"))
    for one in tenants:
        cells = (one.name, one.memory_mib, one.compute, one.gpu, one.shown_mib)
        typer.echo(form.format(*cells, f"{one.percent:.1f}"))
    refusals = [one for one in tenants if one.refused]
    for one in refusals:
        typer.echo(f"{one.name} asked for more memory than it has, and read: {one.refused}")
    problems = [one.problem for one in tenants if one.problem]
    if len({one.gpu for one in tenants}) > 1:
        problems.append("the pods are on different GPUs")
    if not refusals:
        problems.append("nobody was refused memory")
    return "; ".join(problems)


def where_to_look(name: str, kubeconfig: str) -> str:
    """Return what the user can try next."""
    import shlex

    option = "" if name == "alnair" else f" --name {name}"
    return (
        f"The pods keep running:\n\n"
        f"  export KUBECONFIG={shlex.quote(kubeconfig)}\n"
        f"  kubectl logs -f training                  (each second: which part of the GPU it had)\n"
        f"  kubectl logs inference | head -1          (the refusal)\n"
        f"  kubectl exec training -- ls /run/alnair/vgpu\n"
        f"  kubectl get pod training -o yaml          (see the annotation gpu-assignment)\n\n"
        f"Stop it, and leave nothing behind: alnair down{option}"
    )
