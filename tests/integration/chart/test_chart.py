"""The chart by Helm itself: what it renders, what it refuses, and what an API server says to it."""

import asyncio
import contextlib
import importlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from alnair.cli import main as cli
from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import Conflict, NotFound
from alnair.kube.resources import CRDS
from alnair.local.controlplane import LocalCluster
from alnair.local.programs.clients import client as program
from alnair.local.report import NO_REPORT
from kit.live.scheduler_process import eventually

from .conftest import CHART, NAMESPACE

ROOT = Path(__file__).parents[3]
#: Values as people set them: each must render to what the API server takes.
VALUES = {
    "defaults": "{}",
    "no-workloads": "{workloads: {enabled: false}}",
    "local": (CHART / "ci" / "local-values.yaml").read_text(),
    "only-scheduler": "{scheduler: {only: true}, agent: {enabled: false}}",
    "one-replica": "{scheduler: {replicas: 1}, controller: {replicas: 1}}",
    "no-controller": "{controller: {enabled: false}}",
    "no-scheduler": "{scheduler: {enabled: false}}",
    "agent-only": "{scheduler: {enabled: false}, controller: {enabled: false}}",
    "own-registry": "{image: {registry: registry.example/ai/, tag: v7, pullSecrets: [{name: s}]}}",
    "digest": "{agent: {image: {digest: 'sha256:%s'}}}" % ("0" * 64),
    "no-mutating": "{admission: {mutating: false}}",
    "no-admission": "{admission: {enabled: false}}",
    "no-rbac": "{rbac: {create: false}}",
    "legacy-groups": "{crds: {legacyPodGroups: true, nodeResourceTopologies: false, keep: false}}",
    "network": "{networkPolicies: {enabled: true, from: [{namespaceSelector: {}}]}}",
    "mps": "{agent: {mps: {enabled: true, percent: 50, memoryMiB: 4096}, contextMiB: 300}}",
    "whole-gpus": "{agent: {wholeGpus: always, strayPolicy: warn, probe: false, softFactor: 1.5}}",
    "driver": "{agent: {driver: {libraries: /opt/driver, devices: /opt/dev, also: [/opt/x]}}}",
    "numa": "{agent: {topology: {policy: single-numa-node, scope: pod}, kubeletFolder: /data/k}}",
    "placement": "{scheduler: {nodeSelector: {a: b}, tolerations: [{operator: Exists}]}}",
    "extras": "{agent: {extraArgs: [--verbose], extraEnv: [{name: A, value: b}], podLabels: {a: b},"
    " extraVolumes: [{name: x, emptyDir: {}}], extraVolumeMounts: [{name: x, mountPath: /x}]}}",
    "profiles": "{scheduler: {configuration: {backfill: {enabled: false},"
    " profiles: [{schedulerName: alnair-scheduler}, {schedulerName: tight}]}}}",
    "own-plugins": "{scheduler: {ownPlugins: [Mine], configuration: {profiles: [{schedulerName: a,"
    " plugins: {enabled: [{name: Mine}]}, pluginConfig: [{name: Mine, args: {a: 1}}]}]}}}",
    "dashboards": "{monitoring: {dashboards: {enabled: true}}}",
    "history": "{controller: {replicas: 1, history: {enabled: true, storage: {className: fast}}}}",
    "idle-eviction": "{controller: {idleEviction: {after: 1h}}}",
    "rebalancing": "{controller: {rebalancing: {every: 10m, gain: 1.5}}}",
    "kubelet-page": "{agent: {kubeletPage: {enabled: true, port: 10251}}}",
    "history-postgresql": "{controller: {history: {enabled: true, urlFrom: {secret: s}}}}",
    "classes": "{priorityClasses: [{name: batch, value: -10, preemptionPolicy: Never}]}",
}


def test_what_helm_renders_is_generated_anew_after_every_change(
    helm: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    generate = importlib.import_module("generate")
    stale = [str(file) for file, text in generate.rendered().items() if file.read_text() != text]
    assert stale == [], "run make generate, and commit what it writes"


def test_the_chart_is_free_of_what_helm_warns_of(helm: Callable[..., str]) -> None:
    said = helm("lint", str(CHART), *NAMESPACE, "--strict")
    assert "0 chart(s) failed" in said
    assert "[WARNING]" not in said


def test_another_namespace_is_refused_with_the_command_to_give(helm: Callable[..., str]) -> None:
    with pytest.raises(AssertionError, match="--namespace alnair-system --create-namespace"):
        helm("template", "alnair", str(CHART), "--namespace", "default")


def test_two_controllers_with_one_file_of_history_are_told_what_to_set(
    helm: Callable[..., str],
) -> None:
    values = "{controller: {replicas: 2, history: {enabled: true}}}"
    with pytest.raises(AssertionError, match=r"set controller\.replicas=1, or controller\.history"):
        helm("template", "alnair", str(CHART), *NAMESPACE, values=values)


def test_idle_pods_may_be_evicted_only_where_that_is_asked_for(
    render: Callable[[str], list[Any]],
) -> None:
    for values, is_asked in (("{}", False), (VALUES["idle-eviction"], True)):
        documents = render(values)
        (role,) = (
            one
            for one in documents
            if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", "alnair-controller")
        )
        of_nodes = {verb for r in role["rules"] if "nodes" in r["resources"] for verb in r["verbs"]}
        assert ("get" in of_nodes) is is_asked
        # Workers leave nodes in any case; what is idle needs no further right to go.
        evicting = [r["verbs"] for r in role["rules"] if "pods/eviction" in r["resources"]]
        assert evicting == [["create"]]
        (container,) = dict(pods(documents))["controller"]["spec"]["containers"]
        assert ("--evict-idle=1h" in container["args"]) is is_asked


def test_a_label_of_nodes_that_is_null_is_none(render: Callable[[str], list[Any]]) -> None:
    # As what is to be rid of the default comes to the chart with `helm upgrade --reuse-values`.
    selector = "{nodeSelector: {real: 'true', zone: null}}"
    found = dict(pods(render(f"{{agent: {selector}, scheduler: {selector}}}")))
    assert found["scheduler"]["spec"]["nodeSelector"] == {"real": "true"}
    assert found["agent"]["spec"]["nodeSelector"] == {
        "real": "true",
        "ai.centaurus.io/agent": "enabled",
    }


def test_pods_are_moved_only_where_that_is_asked_for(render: Callable[[str], list[Any]]) -> None:
    for values, is_asked in (("{}", False), (VALUES["rebalancing"], True)):
        documents = render(values)
        of_controller = [
            rule
            for one in documents
            if one["kind"] == "ClusterRole"
            and one["metadata"]["name"].startswith("alnair-controller")
            for rule in one["rules"]
        ]
        of_nodes = {
            v for rule in of_controller if "nodes" in rule["resources"] for v in rule["verbs"]
        }
        assert ("patch" in of_nodes) is is_asked
        # What moves needs no further right to be evicted.
        assert sum("pods/eviction" in rule["resources"] for rule in of_controller) == 1
        (container,) = dict(pods(documents))["controller"]["spec"]["containers"]
        asked = {one for one in container["args"] if one.startswith("--rebalance-")}
        assert {"--rebalance-every=10m", "--rebalance-gain=1.5"} <= asked or not is_asked
        assert bool(asked) is is_asked


def test_agents_may_read_the_kubelets_pages_only_where_that_is_asked_for(
    render: Callable[[str], list[Any]],
) -> None:
    def page(values: str) -> tuple[list[str], bool]:
        documents = render(values)
        (role,) = (one for one in documents if _is(one, "ClusterRole", "alnair-agent"))
        (agent,) = (one for one in documents if _is(one, "DaemonSet", "alnair-agent"))
        rights = [to for rule in role["rules"] for to in rule["resources"] if "nodes/m" in to]
        arguments = agent["spec"]["template"]["spec"]["containers"][0]["args"]
        wanted = "--kubelet-page=https://$(NODE_ADDRESS):10250/metrics/cadvisor"
        return rights, wanted in arguments

    assert page("{}") == ([], False)
    assert page("{agent: {kubeletPage: {enabled: true}}}") == (["nodes/metrics"], True)


def _is(document: Any, kind: str, name: str) -> bool:
    return bool(document["kind"] == kind and document["metadata"]["name"] == name)


def test_a_url_with_a_password_reaches_the_controller_by_its_environment(
    render: Callable[[str], list[Any]],
) -> None:
    found = dict(pods(render(VALUES["history-postgresql"])))["controller"]["spec"]["containers"][0]
    (variable,) = [one for one in found["env"] if one["name"] == "ALNAIR_HISTORY"]
    assert variable["valueFrom"] == {"secretKeyRef": {"name": "s", "key": "url"}}
    assert not [one for one in found["args"] if one.startswith("--history=")]


def test_the_controller_reaches_agents_for_the_history_whomever_else_the_network_keeps_out(
    render: Callable[[str], list[Any]],
) -> None:
    network = "networkPolicies: {enabled: true, from: [{namespaceSelector: {}}]}"
    for history, count in (("true", 2), ("false", 1)):
        control = f"controller: {{replicas: 1, history: {{enabled: {history}}}}}"
        found = render(f"{{{network}, {control}}}")
        (policy,) = [
            one
            for one in found
            if one["kind"] == "NetworkPolicy" and one["metadata"]["name"] == "alnair-agent"
        ]
        assert len(policy["spec"]["ingress"][0]["from"]) == count


def test_a_cluster_without_mutating_policies_is_told_what_to_set(helm: Callable[..., str]) -> None:
    old = ("template", "alnair", str(CHART), *NAMESPACE, "--kube-version", "1.31.0")
    with pytest.raises(AssertionError, match=r"set admission\.mutating=false"):
        helm(*old)
    rendered = helm(*old, values="{admission: {mutating: false}}")
    assert "ValidatingAdmissionPolicy" in rendered
    assert "MutatingAdmissionPolicy" not in rendered
    beta = "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"
    newer = helm("template", "alnair", str(CHART), *NAMESPACE, "--api-versions", beta)
    assert "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: MutatingAdmission" in newer


@pytest.mark.parametrize("name", VALUES)
def test_a_real_api_server_takes_what_is_rendered(
    name: str, cluster: LocalCluster, render: Callable[[str], list[Any]]
) -> None:
    kubectl = program("kubectl", os.environ, NO_REPORT)
    documents = render(VALUES[name])
    for one in documents:
        if one["kind"] == "Pod":  # a dry run makes no service account for it
            one["spec"].pop("serviceAccountName")
    command = [kubectl, f"--kubeconfig={cluster.kubeconfig()}", "apply", "--dry-run=server"]
    result = subprocess.run(
        [*command, "--force-conflicts", "--server-side", "--filename=-"],
        input=yaml.safe_dump_all(documents),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == len(documents)


async def test_custom_resources_stay_or_go_as_the_value_says(
    make_cluster: Callable[..., LocalCluster], helm: Callable[..., str]
) -> None:
    made = make_cluster()
    await made.up()
    async with Client(client_config.load(made.kubeconfig())) as client:

        async def kinds() -> set[str]:
            listed = await client.list(CRDS, label_selector="app.kubernetes.io/part-of=alnair")
            return {one["metadata"]["name"] for one in listed.items}

        async def run(*arguments: str, values: str = "{}") -> None:
            where = (*NAMESPACE, f"--kubeconfig={made.kubeconfig()}")
            await asyncio.to_thread(helm, *arguments, *where, values=values)

        before = await kinds()
        assert len(before) == 6
        # What 'up' wrote by itself, and so would 'kubectl apply', is taken over.
        over = ("--take-ownership", "--server-side=true", "--force-conflicts")
        install = ("install", "alnair", str(CHART), "--create-namespace")
        await run(*install, *over, values="{workloads: {enabled: false}}")
        await run("uninstall", "alnair")
        assert await kinds() == before, "they stay by default"
        await run(*install, values="{workloads: {enabled: false}}")
        gone = "{workloads: {enabled: false}, crds: {keep: false}}"
        await run("upgrade", "alnair", str(CHART), values=gone)
        await run("uninstall", "alnair")

        async def are_gone() -> bool:
            # Of a kind that was changed just before, the API server may say that its "storage is
            # (re)initializing", and looks at it again only when it is touched.
            for name in (left := await kinds()):
                touched = {"metadata": {"annotations": {"example.com/look": str(time.time())}}}
                with contextlib.suppress(NotFound, Conflict):
                    await client.merge_patch(CRDS, name, touched)
            await asyncio.sleep(2)
            return not left

        await eventually(are_gone, 60, "the API server has removed the kinds")


def test_only_what_a_scheduler_cannot_take_over_restarts_its_pods(
    render: Callable[[str], list[Any]],
) -> None:
    def template(configuration: str) -> Any:
        every = render(f"scheduler: {{configuration: {configuration}}}")
        (found,) = [
            one["spec"]["template"]
            for one in every
            if (one["kind"], one["metadata"]["name"]) == ("Deployment", "alnair-scheduler")
        ]
        return found

    before = template("{}")
    assert (
        template("{profiles: [{schedulerName: a}], seed: 3, backfill: {enabled: false}}") == before
    )
    assert template("{logging: {level: debug}}") == before
    assert template("{clientConnection: {bindings: 8}}") != before


def test_alerts_are_rules_that_prometheus_takes(render: Callable[[str], list[Any]]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian, Ubuntu: apt-get install prometheus)")
    file = CHART / "files" / "rules.yaml"
    found = subprocess.run(
        [promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
    documents = render("{monitoring: {rules: {enabled: true}, podMonitors: {enabled: true}}}")
    (rule,) = (one for one in documents if one["kind"] == "PrometheusRule")
    assert rule["spec"] == yaml.safe_load(file.read_text())
    monitors = [one for one in documents if one["kind"] == "PodMonitor"]
    assert [one["spec"]["podMetricsEndpoints"][0]["scheme"] for one in monitors] == ["https"] * 3


def test_alerts_ask_for_metrics_that_there_are() -> None:
    rules = yaml.safe_load((CHART / "files" / "rules.yaml").read_text())
    folder = ROOT / "docs" / "reference"
    pages = [*folder.glob("metrics*.md"), folder / "scheduler.md"]
    known = "".join(page.read_text() for page in pages)
    asked = re.findall(r"\b(?:alnair|scheduler|leader)_\w+", str(rules))
    assert len(set(asked)) >= 6
    assert [name for name in asked if f"`{name}`" not in known] == []


def pods(documents: list[Any]) -> Iterator[tuple[str, Any]]:
    """The templates of pods, by component; and the pod of `helm test`."""
    for one in documents:
        if one["kind"] == "Pod":
            yield "doctor", one
        if one["kind"] in {"Deployment", "DaemonSet"}:
            yield one["metadata"]["name"].removeprefix("alnair-"), one["spec"]["template"]


@pytest.mark.parametrize("name", ["defaults", "own-registry", "extras"])
def test_pods_ask_for_what_they_need_are_probed_and_pinned(
    name: str, render: Callable[[str], list[Any]]
) -> None:
    found = dict(pods(render(VALUES[name])))
    found.pop("doctor")  # it runs for seconds
    assert set(found) == {"scheduler", "controller", "agent"}
    for component, pod in found.items():
        (container,) = pod["spec"]["containers"]
        assert {"cpu", "memory"} <= set(container["resources"]["requests"]), component
        assert "memory" in container["resources"]["limits"], component
        assert {"startupProbe", "livenessProbe"} <= set(container), component
        image, _, tag = container["image"].rpartition(":")
        assert "/" in image, component
        assert tag not in {"", "latest"}, component
        assert container["securityContext"]["readOnlyRootFilesystem"], component
        assert pod["spec"]["priorityClassName"].startswith("system-"), component


def test_all_but_the_agent_meet_the_restricted_pod_security_standard(
    cluster: LocalCluster, render: Callable[[str], list[Any]]
) -> None:
    kubectl = [program("kubectl", os.environ, NO_REPORT), f"--kubeconfig={cluster.kubeconfig()}"]
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "restricted-here"}}
    space["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}  # type: ignore[index]

    def make(document: object, *options: str) -> str:
        command = [*kubectl, "create", *options, "--filename=-"]
        text = yaml.safe_dump(document)
        said = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return said.stderr if said.returncode else ""

    assert make(space) == ""
    refused = {}
    for component, pod in pods(render("{}")):
        pod["spec"].pop("serviceAccountName")
        metadata = {"name": component, "namespace": "restricted-here"}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]}
        refused[component] = make(document, "--dry-run=server")
    assert "violates PodSecurity" in refused.pop("agent")
    assert refused == {"scheduler": "", "controller": "", "doctor": ""}


def test_no_component_may_do_everything(render: Callable[[str], list[Any]]) -> None:
    documents = render("{}")
    roles = [one for one in documents if one["kind"] in {"ClusterRole", "Role"}]
    assert len(roles) >= 6
    for role in roles:
        for rule in role["rules"]:
            words = [*rule["verbs"], *rule.get("resources", []), *rule.get("apiGroups", [])]
            assert "*" not in words, role["metadata"]["name"]
            if "secrets" in words:  # of training jobs: made, and never read
                assert (rule["verbs"], role["metadata"]["name"]) == (
                    ["create"],
                    "alnair-controller",
                )
    bound = {one["roleRef"]["name"] for one in documents if one["kind"].endswith("RoleBinding")}
    assert bound <= {role["metadata"]["name"] for role in roles}


@pytest.mark.parametrize("name", ["defaults", "profiles"])
def test_the_scheduler_takes_the_configuration_that_is_rendered(
    name: str, render: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    maps = [one for one in render(VALUES[name]) if one["kind"] == "ConfigMap"]
    (tmp_path / "scheduler.yaml").write_text(maps[0]["data"]["scheduler.yaml"])
    command = ["scheduler", "--config", str(tmp_path / "scheduler.yaml"), "--validate"]
    result = CliRunner().invoke(cli.build(cli.COMMANDS), command)
    assert result.exit_code == 0, result.output


def test_measured_pairs_of_a_configmap_are_where_the_scheduler_looks_for_them(
    render: Callable[[str], list[Any]],
) -> None:
    objects = render("scheduler: {pairs: {configMap: my-pairs, key: mine.json}}")
    (text,) = (o["data"]["scheduler.yaml"] for o in objects if o["kind"] == "ConfigMap")
    (pod,) = (
        one["spec"]["template"]["spec"]
        for one in objects
        if (one["kind"], one["metadata"]["name"]) == ("Deployment", "alnair-scheduler")
    )
    (volume,) = (v for v in pod["volumes"] if v.get("configMap", {}).get("name") == "my-pairs")
    (mount,) = (m for m in pod["containers"][0]["volumeMounts"] if m["name"] == volume["name"])
    assert yaml.safe_load(text)["pairs"] == f"{mount['mountPath']}/mine.json"


def test_arguments_of_pods_are_known_to_the_components(
    render: Callable[[str], list[Any]],
) -> None:
    for values in (
        "{}",
        VALUES["mps"],
        VALUES["driver"],
        VALUES["only-scheduler"],
        VALUES["history"],
    ):
        for component, pod in pods(render(values)):
            verb, *options = pod["spec"]["containers"][0]["args"]
            assert verb == component
            help_ = CliRunner().invoke(cli.build(cli.COMMANDS), [verb, "--help"]).output
            assert [o for o in options if o.partition("=")[0] not in help_] == []
