"""What the tests of the live scheduler share: its process, manifests, and waiting."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import LEASES, PODS, Manifest
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.live.pauses import pause


class SchedulerProcess:
    """`alnair scheduler` as a process of its own, without a supervisor."""

    verb = "scheduler"

    def __init__(self, cluster: LocalCluster, folder: Path, identity: str, *flags: str) -> None:
        self.identity = identity
        self.log = folder / f"{identity}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "alnair",
                    self.verb,
                    f"--kubeconfig={cluster.kubeconfig(f'alnair-{self.verb}')}",
                    f"--identity={identity}",
                    *flags,
                ],
                stdout=log,
                stderr=log,
            )

    def signal(self, number: int) -> None:
        """Send a signal and, if it ends the process, wait for that."""
        self.process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.process.wait(timeout=20)

    def close(self) -> None:
        """End it, however it is."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(timeout=10)


class ControllerProcess(SchedulerProcess):
    """`alnair controller` as a process of its own."""

    verb = "controller"


StartScheduler = Callable[..., SchedulerProcess]
StartController = Callable[..., ControllerProcess]

#: A lease that is short enough for a test that kills its holder.
SHORT_LEASE = ("--lease-duration=3", "--renew-deadline=2", "--retry-period=0.5")


def pod(
    namespace: str,
    name: str,
    *,
    limits: dict[str, Any] | None = None,
    containers: list[dict[str, Any]] | None = None,
    cpu: str = "100m",
    scheduler: str = names.SCHEDULER,
    **metadata: Any,
) -> Manifest:
    """A pod manifest with one container, or the given ones."""
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": limits or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": containers
            or [{"name": "main", "image": "pause", "resources": resources}],
        },
    }


async def eventually(
    check: Callable[[], Awaitable[bool]],
    seconds: float = 60.0,
    what: str | Callable[[], object] = "",
) -> None:
    """Wait until the check holds.

    Args:
        check: What is to hold.
        seconds: To wait at most.
        what: Told if it does not; a function is asked only then, and so tells how it is then.
    """
    began = time.monotonic()
    while not await check():
        if (waited := time.monotonic() - began) > seconds:
            told = what() if callable(what) else what
            pytest.fail(f"not within {seconds:g} s: {told or check}")
        await asyncio.sleep(pause(waited))


async def bound(client: Client, namespace: str) -> dict[str, str]:
    """Pod name → node, of the pods that are bound."""
    listing = await client.list(PODS, namespace)
    return {
        p["metadata"]["name"]: p["spec"]["nodeName"]
        for p in listing.items
        if p["spec"].get("nodeName")
    }


async def holder(client: Client) -> str:
    """Who holds the scheduler's lease."""
    leases = (await client.list(LEASES, names.NAMESPACE)).items
    return next(
        (
            lease["spec"].get("holderIdentity") or ""
            for lease in leases
            if lease["metadata"]["name"] == names.SCHEDULER
        ),
        "",
    )
