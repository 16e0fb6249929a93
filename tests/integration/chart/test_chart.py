"""The chart by Helm itself: what it renders, what it refuses, and what an API server says to it."""

import asyncio
import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from alnair.cli import main as cli
from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import CRDS
from alnair.local.controlplane import LocalCluster
from alnair.local.errors import LocalClusterError
from alnair.local.programs.clients import client as program
from alnair.local.report import NO_REPORT
from kit.live.scheduler_process import eventually

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "alnair"
NAMESPACE = ("--namespace", "alnair-system")
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
    "dashboards": "{monitoring: {dashboards: {enabled: true}}}",
    "history": "{controller: {replicas: 1, history: {enabled: true, storage: {className: fast}}}}",
    "history-postgresql": "{controller: {history: {enabled: true, urlFrom: {secret: s}}}}",
    "classes": "{priorityClasses: [{name: batch, value: -10, preemptionPolicy: Never}]}",
}


@pytest.fixture(scope="module")
def helm() -> Callable[..., str]:
    try:
        path = program("helm", os.environ, NO_REPORT)
    except LocalClusterError as error:
        pytest.skip(str(error))

    def run(*arguments: str, values: str = "{}") -> str:
        """What Helm prints, or an error with what it says."""
        command = [str(path), *arguments]
        if arguments[0] != "uninstall":
            command.append("--values=-")
        result = subprocess.run(command, input=values, capture_output=True, text=True, check=False)
        if result.returncode:
            raise AssertionError(result.stderr + result.stdout)
        return result.stdout

    return run


@pytest.fixture(scope="module")
def render(helm: Callable[..., str]) -> Callable[[str], list[Any]]:
    def documents(values: str) -> list[Any]:
        text = helm("template", "alnair", str(CHART), *NAMESPACE, values=values)
        return [one for one in yaml.safe_load_all(text) if one]

    return documents


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


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("{agent: {polcy: warn}}", "at '/agent': additional properties 'polcy' not allowed"),
        ("{agent: {policy: kill}}", "at '/agent/policy': value must be one of 'warn'"),
        ("{scheduler: {replicas: two}}", "at '/scheduler/replicas': got string, want integer"),
        ("{agent: {mps: {percent: 0}}}", "at '/agent/mps/percent'"),
        ("{priorityClasses: [{name: a}]}", "missing property 'value'"),
        ("{sheduler: {}}", "additional properties 'sheduler' not allowed"),
    ],
)
def test_values_that_cannot_be_meant_are_refused_by_name(
    helm: Callable[..., str], values: str, said: str
) -> None:
    with pytest.raises(AssertionError, match=said.replace("(", r"\(")):
        helm("template", "alnair", str(CHART), *NAMESPACE, values=values)


def test_another_namespace_is_refused_with_the_command_to_give(helm: Callable[..., str]) -> None:
    with pytest.raises(AssertionError, match="--namespace alnair-system --create-namespace"):
        helm("template", "alnair", str(CHART), "--namespace", "default")


def test_two_controllers_with_one_file_of_history_are_told_what_to_set(
    helm: Callable[..., str],
) -> None:
    values = "{controller: {replicas: 2, history: {enabled: true}}}"
    with pytest.raises(AssertionError, match=r"set controller\.replicas=1, or controller\.history"):
        helm("template", "alnair", str(CHART), *NAMESPACE, values=values)


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
        assert len(before) == 3
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
            return await kinds() == set()

        await eventually(are_gone, what="the API server has removed the kinds")


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
    assert [one["spec"]["podMetricsEndpoints"][0]["scheme"] for one in monitors] == ["https"] * 2


def test_alerts_ask_for_metrics_that_there_are() -> None:
    rules = yaml.safe_load((CHART / "files" / "rules.yaml").read_text())
    pages = ("metrics.md", "metrics-of-the-agent.md")
    known = "".join((ROOT / "docs" / "reference" / page).read_text() for page in pages)
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
            assert "secrets" not in words, role["metadata"]["name"]
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
