"""Alnair as pods of a local cluster's real node, and no more as pods."""

import asyncio
import os
from pathlib import Path

from alnair.kube.client import Client
from alnair.local import installation, release
from alnair.local.own_images import images
from alnair.local.real_node.node import RealNode
from alnair.local.release import Release
from alnair.local.report import ProgressReport


async def ensure(
    client: Client, node: RealNode, kubeconfig: Path, report: ProgressReport, *, only: bool
) -> None:
    """Have this checkout's images on the node, and its chart installed, with all pods Ready.

    Args:
        client: Of the cluster's administrator.
        node: Is up.
        kubeconfig: The same administrator's.
        report: Told what is going on.
        only: Whether there is no other scheduler.

    Raises:
        LocalClusterError: An image cannot be built, Helm fails, or a pod does not become Ready.
    """
    await release.forget_interrupted(client)
    built = await asyncio.to_thread(images.build, os.environ, report)
    for image in built:
        await asyncio.to_thread(node.import_archive, image.archive, image.digest)
    values = release.values([image.name for image in built], node.pod_logs, only=only)
    await Release(kubeconfig, report).install(values)
    await installation.leave_to_release(client)
    await release.agents_ready(client)
