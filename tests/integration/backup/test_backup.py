"""`alnair backup` and `alnair restore` against a real API server."""

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import ELASTIC_QUOTAS, NAMESPACES, NODES, PODGROUPS, Manifest
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.command import alnair, last_json

NODE = "t4x2-0000"


def gang(name: str, members: int, **metadata: Any) -> Manifest:
    kind = {"apiVersion": PODGROUPS.api_version, "kind": PODGROUPS.kind}
    return {**kind, "metadata": {"name": name, **metadata}, "spec": {"minMember": members}}


async def run(verb: str, cluster: LocalCluster, file: Path, *options: str, code: int = 0) -> Any:
    """What the command says: its JSON, or its errors."""
    arguments = [verb, file, f"--kubeconfig={cluster.kubeconfig()}", "--json", *options]
    done = await asyncio.to_thread(alnair, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return last_json(done) if not code else done.stderr


async def filled(client: Client, namespace: str) -> None:
    """Has a quota, gangs and labels there, as people and controllers make them."""
    quota = {
        "apiVersion": ELASTIC_QUOTAS.api_version,
        "kind": ELASTIC_QUOTAS.kind,
        "metadata": {"name": "q"},
        "spec": {"min": {names.GPU: "2"}, "max": {names.GPU: "4"}},
    }
    await client.create(ELASTIC_QUOTAS, quota, namespace)
    annotations = {names.TOPOLOGY_PREFERRED: "rack", names.GANG_PLAN: "{}"}
    await client.create(
        PODGROUPS, gang("g", 3, annotations=annotations, labels={"a": "b"}), namespace
    )
    status = {"status": {"phase": "Running", "running": 3}}
    await client.merge_patch(PODGROUPS, "g", status, namespace, subresource="status")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
    await client.create(PODGROUPS, gang("owned", 2, ownerReferences=[owner]), namespace)
    await client.merge_patch(NODES, NODE, {"metadata": {"labels": {names.AGENT_NODE: "enabled"}}})
    allowed = {"metadata": {"labels": {names.HOST_ACCESS: "allowed"}}}
    await client.merge_patch(NAMESPACES, namespace, allowed)


async def emptied(client: Client, namespace: str) -> None:
    """Takes all of it away again."""
    await client.delete_collection(ELASTIC_QUOTAS, namespace)
    await client.delete_collection(PODGROUPS, namespace)
    await client.merge_patch(NODES, NODE, {"metadata": {"labels": {names.AGENT_NODE: None}}})
    label = {"metadata": {"labels": {names.HOST_ACCESS: None}}}
    await client.merge_patch(NAMESPACES, namespace, label)


async def test_what_was_lost_comes_back_and_nothing_happens_twice(
    objects_cluster: LocalCluster, admin: Client, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "backup.json"
    await filled(admin, namespace)
    taken = await run("backup", objects_cluster, file)
    assert taken["absent"] == ["podgroups.scheduling.sigs.k8s.io"]
    assert taken["owned"] >= 1
    saved = json.loads(file.read_bytes())
    mine = [one for one in saved["objects"] if one["metadata"]["namespace"] == namespace]
    assert {one["metadata"]["name"] for one in mine} == {"q", "g"}
    await emptied(admin, namespace)

    tried = await run("restore", objects_cluster, file, "--dry-run")
    assert f"PodGroup {namespace}/g" in tried["objects"]["created"]
    assert (await admin.list(PODGROUPS, namespace)).items == [], "a dry run writes nothing"

    done = await run("restore", objects_cluster, file)
    assert done["objects"]["created"] == tried["objects"]["created"]
    found = await admin.get(PODGROUPS, "g", namespace)
    assert found["spec"]["minMember"] == 3
    assert found["metadata"]["labels"] == {"a": "b"}
    assert found["metadata"]["annotations"] == {names.TOPOLOGY_PREFERRED: "rack"}, "no plan"
    assert "status" not in found
    assert (await admin.get(ELASTIC_QUOTAS, "q", namespace))["spec"]["max"] == {names.GPU: "4"}
    node = await admin.get(NODES, NODE)
    assert node["metadata"]["labels"][names.AGENT_NODE] == "enabled"
    labels = (await admin.get(NAMESPACES, namespace))["metadata"]["labels"]
    assert labels[names.HOST_ACCESS] == "allowed"

    again = await run("restore", objects_cluster, file)
    assert set(again["objects"]) == {"unchanged"}
    after = await admin.get(PODGROUPS, "g", namespace)
    assert after["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
    await emptied(admin, namespace)


async def test_what_differs_is_kept_unless_it_is_to_be_as_in_the_backup(
    objects_cluster: LocalCluster, admin: Client, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "backup.json"
    await filled(admin, namespace)
    await run("backup", objects_cluster, file)
    plan = {"metadata": {"annotations": {names.GANG_PLAN: "of now"}}, "spec": {"minMember": 8}}
    await admin.merge_patch(PODGROUPS, "g", plan, namespace)
    kept = await run("restore", objects_cluster, file)
    assert kept["objects"]["kept"] == [f"PodGroup {namespace}/g"]
    assert (await admin.get(PODGROUPS, "g", namespace))["spec"]["minMember"] == 8
    done = await run("restore", objects_cluster, file, "--existing=update")
    assert done["objects"]["updated"] == [f"PodGroup {namespace}/g"]
    found = await admin.get(PODGROUPS, "g", namespace)
    assert found["spec"]["minMember"] == 3
    assert found["metadata"]["annotations"][names.GANG_PLAN] == "of now", "the scheduler's, of now"
    assert found["status"]["phase"] == "Running"
    await emptied(admin, namespace)


async def test_one_bad_object_refuses_all_before_anything_is_written(
    objects_cluster: LocalCluster, admin: Client, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "backup.json"
    await filled(admin, namespace)
    await run("backup", objects_cluster, file)
    await emptied(admin, namespace)
    saved = json.loads(file.read_bytes())
    saved["objects"] = [o for o in saved["objects"] if o["metadata"]["namespace"] == namespace]
    saved["objects"].append(gang("bad", -1, namespace=namespace))
    file.write_text(json.dumps(saved))
    said = await run("restore", objects_cluster, file, code=1)
    assert f"PodGroup {namespace}/bad" in said
    assert "minMember" in said
    assert (await admin.list(PODGROUPS, namespace)).items == []
    assert (await admin.list(ELASTIC_QUOTAS, namespace)).items == []

    file.write_bytes(file.read_bytes()[:-50])
    assert f"{file}: is no backup, or not all of one" in await run(
        "restore", objects_cluster, file, code=2
    )


async def test_missing_namespaces_and_kinds_are_named_before_anything_is_written(
    objects_cluster: LocalCluster, admin: Client, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "backup.json"
    await filled(admin, namespace)
    await run("backup", objects_cluster, file)
    await emptied(admin, namespace)
    new = f"new-{uuid.uuid4().hex[:8]}"
    saved = json.loads(file.read_text().replace(namespace, new))
    saved["objects"] = [o for o in saved["objects"] if o["metadata"]["namespace"] == new]
    saved["labels"].append({"kind": "Node", "name": "gone", "value": "enabled"})
    file.write_text(json.dumps(saved))
    said = await run("restore", objects_cluster, file, code=1)
    assert f"namespaces that are not there: {new}" in said
    done = await run("restore", objects_cluster, file, "--create-namespaces")
    assert done["objects"]["left out"] == [f"label {names.AGENT_NODE} of Node gone"]
    assert (await admin.get(PODGROUPS, "g", new))["spec"]["minMember"] == 3
    labels = (await admin.get(NAMESPACES, new))["metadata"]["labels"]
    assert labels[names.HOST_ACCESS] == "allowed"

    legacy = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1"}
    saved["objects"].append(gang("old", 2, namespace=new) | legacy)
    file.write_text(json.dumps(saved))
    said = await run("restore", objects_cluster, file, code=1)
    assert "podgroups.scheduling.sigs.k8s.io is not installed" in said
    await emptied(admin, new)
