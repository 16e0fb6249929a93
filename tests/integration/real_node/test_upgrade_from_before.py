"""From an older commit's images and chart to these, under load: half done, by halves, and back.

`ALNAIR_UPGRADE_FROM=HEAD~1` (or a tag) says from which; it takes two minutes, and without it this
is skipped.
"""

import asyncio
import json
import os
import shutil
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import PODGROUPS, PODS, SECRETS, Manifest
from alnair.local import nodelist, release
from alnair.local.controlplane import LocalCluster
from alnair.local.own_images import images as own_images
from alnair.local.own_images import requirements as of_images
from alnair.local.programs.clients import client as program
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.report import NO_REPORT
from alnair.model.names import NAMESPACE
from kit.live.real_pods import until
from kit.live.shared_clusters import SharedClusters, discard
from kit.upgrades import rounds
from kit.upgrades.before import Before, before
from kit.upgrades.under_load import under_load

REVISION = os.environ.get("ALNAIR_UPGRADE_FROM", "")
#: A field of PodGroups that only the next version knows.
NEW = "ofTheNextVersion"


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Before]:
    """What this checkout is upgraded from."""
    if not REVISION:
        pytest.skip("ALNAIR_UPGRADE_FROM names no commit to upgrade from")
    if said := of_images.problem():
        pytest.skip(said)
    with before(REVISION, tmp_path_factory.mktemp("before") / "checkout") as found:
        yield found


@pytest.fixture(scope="module")
def cluster(
    shared_clusters: SharedClusters, machine_before: object, older: Before
) -> Iterator[LocalCluster]:
    """A cluster in which the older Alnair is installed, and whose node has both's images."""
    wish = RealNodeWish(wanted=True, gpus=2, gpu_model="t4", installed=True)
    made = shared_clusters.make(f"before-{uuid.uuid4().hex[:8]}", real_node=wish)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(own_images, "build", lambda *_: older.images)
            patch.setattr(release, "values", lambda *_, **__: older.values)
            patch.setattr(release, "CHART", older.chart)
            asyncio.run(made.up())
        asyncio.run(made.add_nodes(nodelist.alike(3, 8, "A100")))
        real = made.real_node()
        assert real is not None
        for image in own_images.build(os.environ, NO_REPORT):
            real.import_archive(image.archive, image.digest)
        yield made
    finally:
        asyncio.run(discard(made))


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[Client]:
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        yield client


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """This checkout's chart, with a change of a custom resource."""
    copied = shutil.copytree(rounds.CHART, tmp_path / "chart")
    path = copied / "files" / "crds" / "podgroups.scheduling.x-k8s.io.yaml"
    definition = yaml.safe_load(path.read_text())
    for version in definition["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"][NEW] = {"type": "string"}
    path.write_text(yaml.safe_dump(definition))
    return copied


async def images(client: Client) -> dict[str, set[str]]:
    """The tags that pods of each component run, of those that are not leaving."""
    found: dict[str, set[str]] = {}
    for pod in (await client.list(PODS, NAMESPACE)).items:
        if not pod["metadata"].get("deletionTimestamp"):
            component = pod["metadata"]["labels"]["app.kubernetes.io/component"]
            tag = pod["spec"]["containers"][0]["image"].rpartition(":")[2]
            found.setdefault(component, set()).add(tag)
    return found


async def knows(client: Client, name: str) -> bool:
    """Whether the API server keeps the new field of a PodGroup."""
    group: Manifest = {
        "apiVersion": PODGROUPS.api_version,
        "kind": PODGROUPS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 1, NEW: "kept"},
    }
    made = await client.create(PODGROUPS, group)
    await client.delete(PODGROUPS, name, "default")
    return NEW in made["spec"]


async def kill_in_the_middle(cluster: LocalCluster, client: Client, *arguments: str) -> None:
    """Begin an upgrade, and kill Helm when the first pod of the new scheduler is there."""
    before = await images(client)
    helm = await asyncio.to_thread(program, "helm", os.environ, NO_REPORT)
    process = await asyncio.create_subprocess_exec(
        *(helm, *arguments, f"--namespace={NAMESPACE}", f"--kubeconfig={cluster.kubeconfig()}"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )

    async def has_begun() -> bool:
        return (await images(client))["scheduler"] != before["scheduler"]

    await until(has_begun, "the upgrade has begun")
    process.kill()
    await process.wait()


async def is_noted_as_pending(client: Client) -> bool:
    """Whether Helm's note says that something is under way."""
    wanted = "owner=helm,name=alnair,status in (pending-upgrade)"
    return bool((await client.list(SECRETS, NAMESPACE, label_selector=wanted)).items)


@pytest.mark.timeout(500)
async def test_an_older_version_is_upgraded_by_halves_and_rolled_back_under_load(
    cluster: LocalCluster,
    client: Client,
    shared_clusters: SharedClusters,
    older: Before,
    chart: Path,
    tmp_path: Path,
) -> None:
    old, new = (older.images[0].name, own_images.names()[0])
    old_tag, new_tag = (name.rpartition(":")[2] for name in (old, new))
    assert await images(client) == {key: {old_tag} for key in ("scheduler", "controller", "agent")}
    values = tmp_path / "values.json"
    wanted: dict[str, Any] = release.values(own_images.names())
    values.write_text(json.dumps(wanted))
    upgrade = ("upgrade", "alnair", str(chart), "--reset-values", f"--values={values}")
    # Agents last: the new ones come only where the old ones are deleted. Helm would wait for that.
    last = (
        "--set=agent.updateStrategy.type=OnDelete",
        "--set=agent.updateStrategy.rollingUpdate=null",
    )
    # An agent that does not close its node yet leaves some milliseconds in which pods are refused.
    closes = (older.sources / "src/alnair/processes/agent/closing.py").exists()
    refused = "" if closes else "UnexpectedAdmissionError"
    async with under_load(cluster, client, shared_clusters.audits, tmp_path, refused) as seen:
        assert not await knows(client, "before")
        await seen.slices(1)

        await kill_in_the_middle(cluster, client, *upgrade, *last)
        assert await is_noted_as_pending(client)
        await release.forget_interrupted(client)  # as docs/how-to/upgrade.md says
        await rounds.helm(cluster, *upgrade, *last)
        half = {"scheduler": {new_tag}, "controller": {new_tag}, "agent": {old_tag}}

        async def is_half() -> bool:
            return await images(client) == half

        await until(is_half, "all but the agents are new")
        assert await knows(client, "half")
        seen.look()
        # The new scheduler and controller go on with the old agent.
        await seen.slices(5)

        await rounds.helm(cluster, *upgrade, "--wait")
        await release.agents_ready(client)
        assert await images(client) == {key: {new_tag} for key in half}
        seen.look()
        await seen.slices(3)

        await rounds.helm(cluster, "rollback", "alnair", "1", "--wait")
        await release.agents_ready(client)
        assert await images(client) == {key: {old_tag} for key in half}
        assert not await knows(client, "after")
        seen.look()
        await seen.slices(3)
