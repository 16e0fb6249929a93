"""Upgrades and rollbacks of an installed release, one after the other, by Helm."""

import asyncio
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from alnair.kube.client import Client
from alnair.local import preflight, release
from alnair.local.controlplane import LocalCluster
from alnair.local.programs.clients import client as program
from alnair.local.real_node import programs
from alnair.local.report import NO_REPORT
from alnair.model.names import NAMESPACE
from kit.real_node import node_shell

CHART: Final = Path(__file__).parents[3] / "charts" / "alnair"
#: By this tag the same images are other ones, as those of another version.
OTHER_TAG: Final = "other"


async def helm(cluster: LocalCluster, *arguments: str) -> str:
    """What Helm says, when it has done it."""
    path = await asyncio.to_thread(program, "helm", os.environ, NO_REPORT)
    command = [path, *arguments, f"--namespace={NAMESPACE}"]
    found = await asyncio.to_thread(
        subprocess.run,
        [*command, f"--kubeconfig={cluster.kubeconfig()}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout + found.stderr


def tag_images(cluster: LocalCluster, names: Sequence[str]) -> None:
    """Give images on the node the other tag, too."""
    found = preflight.programs(programs.PROGRAMS, os.environ, NO_REPORT)
    for name in names:
        other = f"{name.rpartition(':')[0]}:{OTHER_TAG}"
        command = programs.ctr(found, "images", "tag", name, other)
        node_shell.run(cluster.layout.folder, *command)


async def turn(cluster: LocalCluster, client: Client, number: int) -> float:
    """Upgrade or roll back, and wait until all pods are there; return the seconds that it took.

    An even number is an upgrade, to other images and values in turn, an odd one a rollback.
    """
    began = time.monotonic()
    if number % 2:
        await helm(cluster, "rollback", "alnair", "--wait")
    else:
        parts = ("agent", "scheduler", "controller")
        changed = [f"{part}.podAnnotations.upgrade=number-{number}" for part in parts]
        if number % 4 == 0:
            changed += [f"{part}.image.tag={OTHER_TAG}" for part in parts]
        options = ("--reset-then-reuse-values", "--wait", f"--set={','.join(changed)}")
        await helm(cluster, "upgrade", "alnair", str(CHART), *options)
    await release.agents_ready(client)
    return time.monotonic() - began
