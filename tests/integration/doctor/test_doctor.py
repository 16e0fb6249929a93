"""`alnair doctor` against a real API server: what it finds in a well cluster, and in others."""

import asyncio
import datetime as dt
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from alnair.cli import main as cli
from alnair.doctor import run
from alnair.doctor.cluster.look import DAEMON_SETS
from alnair.doctor.finding import Found, Level
from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CRDS,
    ELASTIC_QUOTAS,
    LEASES,
    MUTATING_POLICIES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    VALIDATING_POLICY_BINDINGS,
    Manifest,
)
from alnair.local import installation
from alnair.local.components.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.local.errors import LocalClusterError
from alnair.local.programs.clients import client as program
from alnair.local.report import NO_REPORT
from alnair.model import names
from kit.command import alnair
from kit.live.impersonation import client_as
from kit.live.scheduler_process import eventually
from kit.live.shared_clusters import SharedClusters

CHART = Path(__file__).parents[3] / "charts" / "alnair"
OPTED_IN = {"ai.centaurus.io/agent": "enabled"}
GPUS = {"v": 1, "t": "2026-11-23T00:00:00Z", "gpus": []}


@pytest.fixture
def bare(shared_clusters: SharedClusters) -> LocalCluster:
    """API server and store only: what leads and runs there, a test writes itself."""

    async def prepare(cluster: LocalCluster) -> None:
        async with Client(client_config.load(cluster.kubeconfig())) as client:
            await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, "default")

    return shared_clusters.get("dr", prepare, components=BARE)


@pytest.fixture
async def admin(bare: LocalCluster) -> AsyncIterator[Client]:
    async with Client(client_config.load(bare.kubeconfig())) as client:
        yield client
        for kind, namespace in ((LEASES, names.NAMESPACE), (PODS, "default"), (NODES, None)):
            await client.delete_collection(kind, namespace, grace_seconds=0)
        for kind in (DAEMON_SETS, ELASTIC_QUOTAS):
            await client.delete_collection(kind, "default")
        await installation.install(client)


async def found(client: Client, *checks: str) -> dict[str, list[Found]]:
    """What these checks find, or all, by check."""
    from alnair.doctor.registry import CLUSTER

    wanted = {name: check for name, check in CLUSTER.items() if name in checks or not checks}
    every: dict[str, list[Found]] = {name: [] for name in wanted}
    async for one in run.of_cluster(client, lambda what, done, total: None, wanted):
        every[one.check].append(one)
    return every


async def bad(client: Client, *checks: str) -> list[tuple[str, str]]:
    """The level and sentence of all that is not well."""
    every = await found(client, *checks)
    return [
        (one.finding.level.value, f"{one.finding.where}: {one.finding.what}")
        for several in every.values()
        for one in several
        if one.finding.level is not Level.OK
    ]


async def lease(client: Client, name: str, holder: str, age: float = 0.0, **more: Any) -> None:
    """Somebody holds a lease, who renewed it so many seconds ago."""
    renewed = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=age)
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 60,  # longer than any test looks at it
        "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    metadata = {"name": name, "namespace": names.NAMESPACE, **more}
    await client.create(LEASES, {"metadata": metadata, "spec": spec})


async def node(client: Client, name: str, *, capacity: dict[str, str] | None = None) -> None:
    """A node whose agent tells of its GPUs."""
    labels = {**OPTED_IN, "nvidia.com/gpu.count": "2"}
    annotations = {names.GPU_STATIC: json.dumps(GPUS)}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    info = {"containerRuntimeVersion": "containerd://2.1.4"}
    await client.create(NODES, {"metadata": metadata})
    status = {"capacity": capacity or {}, "allocatable": capacity or {}, "nodeInfo": info}
    await client.merge_patch(NODES, name, {"status": status}, subresource="status")


async def test_a_cluster_in_which_all_is_as_it_should_be_is_well(admin: Client) -> None:
    await lease(admin, "alnair-scheduler", "one")
    await lease(admin, "alnair-controller", "two")
    await lease(admin, "alnair-agent-n", "n")
    await node(admin, "n")
    every = await found(admin)
    assert all(every.values()), "each check says something"
    assert await bad(admin) == []


async def test_the_command_ends_by_what_it_found(bare: LocalCluster, admin: Client) -> None:
    def doctor(*options: str) -> Any:
        command = ["doctor", "--kubeconfig", str(bare.kubeconfig()), *options]
        return CliRunner().invoke(cli.build(["doctor"]), command)

    well = await asyncio.to_thread(doctor)
    assert well.exit_code == 0, well.output
    assert "fix: kubectl label node NODE ai.centaurus.io/agent=enabled" in well.output
    await lease(admin, "alnair-scheduler", "one", age=100)
    result = await asyncio.to_thread(doctor, "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["ok"] is False
    (error,) = [one for one in answer["findings"] if one["level"] == "error"]
    assert error["check"] == "leaders"
    assert error["fix"].startswith("kubectl ")


def test_a_cluster_that_does_not_answer_ends_it_with_its_own_code(tmp_path: Path) -> None:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "current-context": "c",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    command = ["doctor", "--kubeconfig", str(tmp_path / "config")]
    result = CliRunner().invoke(cli.build(["doctor"]), command)
    assert result.exit_code == 3
    assert "the cluster cannot be read" in result.output


async def test_what_a_caller_may_not_ask_is_a_warning_and_ends_nothing(
    bare: LocalCluster, admin: Client
) -> None:
    async with client_as(bare, "nobody-in-particular") as client:
        every = await found(client)
    levels = {one.finding.level for several in every.values() for one in several}
    assert levels == {Level.OK, Level.WARNING}
    assert "could not be asked" in every["custom-resources"][0].finding.what
    assert "rights could not be asked" in every["rights"][0].finding.what
    assert every["api-server"][0].finding.level is Level.OK


async def test_a_component_asks_for_its_own_rights_where_it_may_ask_for_no_others(
    bare: LocalCluster, admin: Client
) -> None:
    async with client_as(bare, "alnair-scheduler") as client:
        levels = [one.finding for one in (await found(client, "rights"))["rights"]]
    assert [(one.where, one.level.value) for one in levels] == [
        ("system:serviceaccount:alnair-system:alnair-agent", "warning"),
        ("system:serviceaccount:alnair-system:alnair-controller", "warning"),
        ("alnair-scheduler", "ok"),
    ]


async def test_rights_that_were_taken_away_are_named(admin: Client) -> None:
    await admin.delete(CLUSTER_ROLE_BINDINGS, "alnair-controller")

    async def is_seen() -> bool:
        said = await bad(admin, "rights")
        return len(said) == 1 and "the controller may not create" in said[0][1]

    await eventually(is_seen, what="the API server knows that the binding is gone")


async def test_a_component_without_rights_is_an_error_only_if_it_was_ever_there(
    admin: Client,
) -> None:
    for name in ("", "-history", "-rebalancing"):
        await admin.delete(CLUSTER_ROLE_BINDINGS, f"alnair-controller{name}")
    await admin.delete(ROLE_BINDINGS, "alnair-controller", names.NAMESPACE)

    async def is_seen() -> bool:
        return [level for level, _ in await bad(admin, "rights")] == ["warning"]

    await eventually(is_seen, what="the API server knows that the bindings are gone")
    assert "no controller is installed" in (await bad(admin, "rights"))[0][1]
    await lease(admin, "alnair-controller", "one")
    ((level, text),) = await bad(admin, "rights")
    assert level == "error"
    assert "the controller has no rights at all" in text


async def test_who_left_out_what_mutates_is_warned_only(admin: Client) -> None:
    await admin.delete(MUTATING_POLICIES, "vgpu.alnair")
    assert [level for level, _ in await bad(admin, "policies", "policies-in-force")] == ["warning"]


async def test_a_policy_that_is_not_bound_is_an_error_and_not_in_force(admin: Client) -> None:
    for name in ("vgpu-requests.alnair", "vgpu-requests-of-templates.alnair"):
        await admin.delete(VALIDATING_POLICY_BINDINGS, name)
    (said,) = await bad(admin, "policies")
    assert said[0] == "error"
    assert "not bound: vgpu-requests-of-templates.alnair, vgpu-requests.alnair is" in said[1]

    async def is_seen() -> bool:
        return any("not in force" in text for _, text in await bad(admin, "policies-in-force"))

    await eventually(is_seen, what="the API server no longer asks the policy")


async def test_what_is_left_out_on_purpose_is_not_missed(
    bare: LocalCluster, admin: Client, of_the_chart: Callable[[str], list[Manifest]]
) -> None:
    # What an upgrade with these switched off leaves behind: a lease, a label, and no policies.
    await lease(admin, "alnair-scheduler", "")
    await lease(admin, "alnair-agent-n", "n", 500)
    await node(admin, "n")
    for binding in ("vgpu-requests.alnair", "vgpu-requests-of-templates.alnair"):
        await admin.delete(VALIDATING_POLICY_BINDINGS, binding)
    await admin.delete(CLUSTER_ROLE_BINDINGS, "alnair-scheduler")
    values = "{scheduler: {enabled: false}, agent: {enabled: false}, admission: {enabled: false}}"
    (pod,) = [one for one in of_the_chart(values) if one["kind"] == "Pod"]
    (container,) = pod["spec"]["containers"]
    words = [word for word in container["args"] if word != "--in-cluster"]

    def doctor(*arguments: str) -> tuple[int, str]:
        command = [*arguments, f"--kubeconfig={bare.kubeconfig()}"]
        done = alnair(*command)
        return done.returncode, done.stdout + done.stderr

    code, said = await asyncio.to_thread(doctor, *words)
    assert code == 0, said
    assert "not asked: without admission" in said
    code, said = await asyncio.to_thread(doctor, "doctor")
    assert code == 1, said


async def test_another_schema_and_a_missing_kind_are_told(admin: Client) -> None:
    quotas = await admin.get(CRDS, "elasticquotas.scheduling.x-k8s.io")
    fields = quotas["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    fields["properties"].pop("max")
    fields.pop("x-kubernetes-validations")  # they speak of it
    await admin.replace(CRDS, quotas)
    topologies = "noderesourcetopologies.topology.node.k8s.io"
    await admin.delete(CRDS, topologies)

    async def is_gone() -> bool:
        try:
            await admin.get(CRDS, topologies)
        except NotFound:
            return True
        return False

    await eventually(is_gone)
    schema, missing = await bad(admin, "custom-resources")
    assert schema[0] == missing[0] == "warning"
    assert "elasticquotas.scheduling.x-k8s.io: another schema" in schema[1]
    assert "at properties.spec.properties.max: newer fields may be dropped" in schema[1]
    assert missing[1].startswith(f"crd/{topologies}: not installed")


async def test_an_agent_that_is_late_or_was_never_seen_is_an_error(admin: Client) -> None:
    await node(admin, "late")
    await node(admin, "never")
    await lease(admin, "alnair-agent-late", "late", age=1000)
    await lease(admin, "alnair-agent-gone", "gone")
    late, never, gone = await bad(admin, "agents")
    assert late[0] == never[0] == "error"
    assert "its agent was seen 10" in late[1]
    assert never[1] == "node/never: no agent has been seen on it"
    assert gone[0] == "warning"


async def test_quotas_that_nodes_cannot_keep_or_do_not_know_are_told(admin: Client) -> None:
    async def quota(name: str, **spec: dict[str, Any]) -> None:
        metadata = {"name": name, "namespace": "default"}
        of = {"apiVersion": ELASTIC_QUOTAS.api_version, "kind": ELASTIC_QUOTAS.kind}
        await admin.create(ELASTIC_QUOTAS, {**of, "metadata": metadata, "spec": spec})

    assert await bad(admin, "elastic-quotas") == []
    await node(admin, "n", capacity={names.GPU: "8", "cpu": "4"})
    await quota("a", min={"cpu": "4500m"}, max={names.GPU: 4, "memory": "1Gi"})
    sums, *more = await bad(admin, "elastic-quotas")
    assert more == []
    assert sums[0] == "warning"
    assert "guarantee 4.5 of cpu, and nodes have 4: not every" in sums[1]
    await quota("b", min={"cpu": 2}, max={"nvidia.com/gpuz": 1})
    said = await bad(admin, "elastic-quotas")
    assert [text for _, text in said] == [
        "elasticquota/b in default: no node offers nvidia.com/gpuz: is nvidia.com/gpu meant?",
        "namespace/default: of several quotas (a, b) the least of each bound counts",
    ]


async def test_two_leaders_and_a_clock_that_is_ahead_are_told(admin: Client) -> None:
    serves = {"annotations": {names.METRICS_URL: "http://127.0.0.1:1"}}
    await lease(admin, "alnair-scheduler", "one", **serves)
    await lease(admin, "another-scheduler", "two", age=-20, **serves)
    await lease(admin, "alnair-controller", "three")
    ((level, several),) = await bad(admin, "leaders")
    assert level == "error"
    assert "several schedulers lead" in several
    ((level, ahead),) = await bad(admin, "clock")
    assert level == "warning"
    assert "the machine of two is" in ahead


async def test_another_device_plugin_beside_our_agent_is_told(admin: Client) -> None:
    await node(admin, "n", capacity={names.GPU: "8"})
    container = {"name": "c", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.18.0"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    daemons = {"metadata": {"name": "plugin", "namespace": "default"}, "spec": spec}
    made = await admin.create(DAEMON_SETS, daemons)
    owner: Manifest = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "plugin"}
    owner |= {"uid": made["metadata"]["uid"], "controller": True}
    metadata = {"name": "p", "namespace": "default", "ownerReferences": [owner]}
    pod = {"metadata": metadata, "spec": {"nodeName": "n", "containers": [container]}}
    await admin.create(PODS, pod)
    beside, twice = await bad(admin, "nvidia-plugin")
    assert "daemonset default/plugin runs beside our agent" in beside[1]
    assert twice[1] == f"node/n: {names.GPU} is 8, and there are 2 GPUs: another plugin shares them"


@pytest.fixture
def of_the_chart() -> Callable[..., list[Manifest]]:
    try:
        helm = program("helm", os.environ, NO_REPORT)
    except LocalClusterError as error:
        pytest.skip(str(error))

    def documents(values: str = "{}") -> list[Manifest]:
        only = ["--show-only", "templates/tests/doctor.yaml", "--namespace", names.NAMESPACE]
        command = [helm, "template", "alnair", str(CHART), *only, "--values=-"]
        done = subprocess.run(command, input=values, check=True, capture_output=True, text=True)
        return list(yaml.safe_load_all(done.stdout))

    return documents


async def test_the_pod_of_helm_test_may_ask_all_but_for_a_dry_run(
    bare: LocalCluster, admin: Client, of_the_chart: Callable[[], list[Manifest]]
) -> None:
    for one in of_the_chart():
        if one["kind"] in {"ClusterRole", "ClusterRoleBinding"}:
            kind = CLUSTER_ROLES if one["kind"] == "ClusterRole" else CLUSTER_ROLE_BINDINGS
            await admin.apply(kind, one, field_manager="test")
    account = f"system:serviceaccount:{names.NAMESPACE}:alnair-doctor"
    async with client_as(bare, account, "system:serviceaccounts") as client:

        async def is_read() -> bool:
            refused = [one for one in await bad(client) if "could not be asked" in one[1]]
            return bool(refused) and all("dry run" in text for _, text in refused)

        await eventually(is_read, what="only dry runs are refused")
