"""Alnair as pods of the local cluster: its chart, installed by Helm as an operator would."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from alnair.kube.client import Client
from alnair.kube.resources import DAEMON_SETS, SECRETS
from alnair.local.errors import LocalClusterError
from alnair.local.programs.clients import client as program
from alnair.local.real_node import init_script
from alnair.local.real_node.settings import NAME as NODE
from alnair.local.report import ProgressReport
from alnair.model.names import AGENT, AGENT_NODE, NAMESPACE, REAL_NODE

NAME: Final = "alnair"
#: The chart is a part of the repository and of no package, as the fake GPU is.
CHART: Final = Path(__file__).parents[3] / "charts" / "alnair"
_PENDING: Final = "pending-install,pending-upgrade,pending-rollback"
#: Seconds for all pods to become Ready.
_PATIENCE: Final = 120


class Release:
    """The one release of a cluster.

    Args:
        kubeconfig: Of its administrator.
        report: Told what is going on.
    """

    def __init__(self, kubeconfig: Path, report: ProgressReport) -> None:
        self._kubeconfig = kubeconfig
        self._report = report

    async def install(self, values: Mapping[str, Any]) -> None:
        """Install or upgrade it, and wait until all its pods are Ready.

        What a former `up` installed without Helm is taken over.

        Args:
            values: Of the chart.

        Raises:
            LocalClusterError: Helm fails; the message has what it said.
        """
        self._report.step("installing Alnair by its chart (helm upgrade --install)")
        await self._run(
            *("upgrade", NAME, str(CHART), "--install", "--create-namespace", "--wait"),
            # Whose the objects and their fields were: a former `up` may have written them.
            *("--take-ownership", "--server-side=true", "--force-conflicts"),
            *(f"--timeout={_PATIENCE}s", "--values=-"),
            text=json.dumps(values),
        )

    async def uninstall(self, *, waits: bool) -> None:
        """Remove it; there may be none.

        Its hook is left out: what agents wrote about the node is its next agent's, or gone with it.

        Args:
            waits: Until its pods have ended, which they cannot once their node is gone.

        Raises:
            LocalClusterError: Helm fails; the message has what it said.
        """
        self._report.step("uninstalling Alnair (helm uninstall)")
        options = ("--wait", f"--timeout={_PATIENCE}s") if waits else ()
        await self._run("uninstall", NAME, "--ignore-not-found", "--no-hooks", *options)

    async def _run(self, *arguments: str, text: str = "") -> None:
        helm = await asyncio.to_thread(program, "helm", os.environ, self._report)
        process = await asyncio.create_subprocess_exec(
            helm,
            *arguments,
            f"--namespace={NAMESPACE}",
            f"--kubeconfig={self._kubeconfig}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await process.communicate(text.encode())
        finally:
            if process.returncode is None:
                # So Helm marks what it has begun, and the next one goes on from there.
                process.send_signal(signal.SIGTERM)
                await process.wait()
        if process.returncode:
            raise LocalClusterError(
                f"helm {arguments[0]} failed: {said.decode(errors='replace').strip()[-1500:]}"
            )


async def forget_interrupted(client: Client) -> None:
    """Remove Helm's note of what it was killed in: as long as that is there, it begins nothing."""
    wanted = f"owner=helm,name={NAME},status in ({_PENDING})"
    for secret in (await client.list(SECRETS, NAMESPACE, label_selector=wanted)).items:
        await client.delete(SECRETS, secret["metadata"]["name"], NAMESPACE)


async def agents_ready(client: Client) -> None:
    """Wait for the agents: Helm does not, where one node may be unavailable and there is but one.

    Raises:
        LocalClusterError: It takes too long.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        found = await client.get(DAEMON_SETS, AGENT, NAMESPACE)
        status = found.get("status", {})
        wanted = status.get("desiredNumberScheduled", 0)
        counts = {status.get(name, 0) for name in ("updatedNumberScheduled", "numberReady")}
        is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
        if is_seen and wanted and counts == {wanted}:
            return
        if time.monotonic() > until:
            raise LocalClusterError(
                f"the agent is not ready after {_PATIENCE} s: 'kubectl --namespace {NAMESPACE}"
                f" describe daemonset {AGENT}' says more"
            )
        await asyncio.sleep(0.2)


def values(
    images: Sequence[str], pod_logs: Path = Path("/var/log/pods"), *, only: bool = False
) -> dict[str, Any]:
    """The chart's values for the real node of a local cluster.

    Args:
        images: Names of the images, as REGISTRY/REPOSITORY:TAG.
        pod_logs: The kubelet's folder of them.
        only: There is no other scheduler: so nobody but us schedules pods, nor our own first one.
    """
    names = dict(_split(image) for image in images)
    registry = images[0].rpartition("/")[0]
    here = {"nodeSelector": {REAL_NODE: "true"}, "replicas": 1}
    fake = {"name": "fakegpu", "hostPath": {"path": init_script.FAKE_GPU}}
    library = init_script.driver_libraries() / "libfakegpu.so"
    return {
        # What is there was imported: nothing can be pulled.
        "image": {"registry": registry, "pullPolicy": "Never"},
        "logFormat": "text",
        "scheduler": here
        | {"image": {"tag": names["alnair"]}, "only": only, "nodeName": NODE if only else ""},
        "controller": here | {"image": {"tag": names["alnair"]}},
        "agent": {
            "image": {"tag": names["alnair-agent"]},
            "nodeSelector": {AGENT_NODE: None, REAL_NODE: "true"},
            "wholeGpus": "always",
            "podLogsFolder": str(pod_logs),
            "driver": {
                "devices": f"{init_script.FAKE_GPU}/dev",
                "also": [str(library), init_script.FAKE_GPU],
            },
            "extraVolumes": [fake],
            "extraVolumeMounts": [{"name": "fakegpu", "mountPath": init_script.FAKE_GPU}],
        },
    }


def _split(image: str) -> tuple[str, str]:
    repository, _, tag = image.rpartition("/")[2].partition(":")
    return repository, tag
