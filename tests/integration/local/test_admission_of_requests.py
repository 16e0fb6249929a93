"""What the API server says of requests for GPUs is what the scheduler would say, word for word."""

import asyncio
import json
import urllib.request
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.errors import Invalid
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.wire import PodWire
from alnair.kube.resources import (
    DEPLOYMENTS,
    PODS,
    VALIDATING_POLICIES,
    Manifest,
    Resource,
    grouped,
)
from alnair.model import names

POLICY = "ValidatingAdmissionPolicy 'vgpu-requests.alnair' with binding"
HALF = {names.VGPU_MEMORY: "1024", names.VGPU_COMPUTE: "50"}
MORE = {names.VGPU_MEMORY: "1024", names.VGPU_COMPUTE: "60"}
WHOLE = {names.GPU: "1"}
MIG = {names.MIG_PREFIX + "1g.10gb.me": "1"}
JOBS = grouped("batch", "v1", "jobs", "Job")
CRON_JOBS = grouped("batch", "v1", "cronjobs", "CronJob")


def container(name: str, limits: dict[str, str], **more: Any) -> Manifest:
    return {"name": name, "image": "none", "resources": {"limits": limits}, **more}


def sidecar(name: str, limits: dict[str, str]) -> Manifest:
    return container(name, limits, restartPolicy="Always")


@dataclass(frozen=True)
class Case:
    """A pod by its containers, and whether it can be meant."""

    what: str
    containers: tuple[Manifest, ...]
    inits: tuple[Manifest, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    good: bool = False

    @property
    def template(self) -> Manifest:
        spec = {"containers": [*self.containers], "initContainers": [*self.inits]}
        return {"metadata": {"annotations": self.annotations}, "spec": spec}


def one(what: str, limits: dict[str, str], *, good: bool = False, **annotations: str) -> Case:
    named = {f"ai.centaurus.io/{key.replace('_', '-')}": one for key, one in annotations.items()}
    return Case(what, (container("main", limits),), (), named, good)


CASES = [
    one("no GPU", {}, good=True),
    one("a GPU", WHOLE, good=True),
    one("half a GPU", HALF, good=True),
    one("memory alone", {names.VGPU_MEMORY: "64"}, good=True),
    one("memory in Ki", {names.VGPU_MEMORY: "2Ki"}, good=True),
    one("no memory", {names.VGPU_MEMORY: "0", names.VGPU_COMPUTE: "0"}, good=True),
    one("all compute", HALF | {names.VGPU_COMPUTE: "100"}, good=True),
    one("more than all compute", HALF | {names.VGPU_COMPUTE: "101"}),
    one("compute without memory", {names.VGPU_COMPUTE: "50"}),
    one("much compute without memory", {names.VGPU_COMPUTE: "150"}),
    one("memory in GiB", {names.VGPU_MEMORY: "8"}),
    one("memory with a suffix", {names.VGPU_MEMORY: "8Gi"}),
    one("as much memory as can be", {names.VGPU_MEMORY: "4Mi"}, good=True),
    one("just too much memory", {names.VGPU_MEMORY: "4194305"}),
    one("just too little memory", HALF | {names.VGPU_MEMORY: "63"}),
    one("whole and slice", HALF | WHOLE),
    one("whole and memory", {names.VGPU_MEMORY: "8"} | WHOLE),
    one("a MIG device", MIG, good=True),
    one("a MIG device and a slice", HALF | MIG),
    one("a MIG device and a whole GPU", WHOLE | MIG | {names.VGPU_COMPUTE: "50"}),
    one("no MIG device and a slice", HALF | {names.MIG_PREFIX + "1g.10gb": "0"}, good=True),
    Case("a MIG device beside a slice", (container("a", MIG), container("b", HALF)), good=True),
    Case("both fill the GPU", (container("a", HALF), container("b", HALF)), good=True),
    Case("both exceed the GPU", (container("a", HALF), container("b", MORE))),
    Case("the second is wrong", (container("a", HALF), container("b", {names.VGPU_MEMORY: "1"}))),
    Case("whole beside slice", (container("a", WHOLE), container("b", HALF)), good=True),
    Case("an init container first", (container("a", MORE),), (container("i", MORE),), good=True),
    Case("the init container is wrong", (container("a", HALF),), (container("i", HALF | WHOLE),)),
    Case("a sidecar and a container", (container("a", MORE),), (sidecar("s", MORE),)),
    Case(
        "a sidecar runs beside the next init container",
        (container("a", {}),),
        (sidecar("s", MORE), container("i", MORE)),
    ),
    Case(
        "an init container ends before the sidecar starts",
        (container("a", {}),),
        (container("i", MORE), sidecar("s", MORE)),
        good=True,
    ),
    one("soft", HALF, vgpu_policy="soft", good=True),
    one("a policy that there is not", HALF, vgpu_policy="strict"),
    one("a policy is read before the containers", HALF | WHOLE, vgpu_policy="strict"),
    one("yielding", HALF, vgpu_priority="low", vgpu_isolation="mps", good=True),
    one("a priority that there is not", HALF, vgpu_priority="high"),
    one("an isolation that there is not", WHOLE, vgpu_isolation="mig"),
    one("memory of the host", HALF, vgpu_memory_policy="swap", good=True),
    one("so much of it", HALF, vgpu_memory_policy="swap", vgpu_host_memory="64", good=True),
    one("the most of it", HALF, vgpu_memory_policy="swap", vgpu_host_memory="4194304", good=True),
    one("none of it", HALF, vgpu_memory_policy="strict", good=True),
    one("too little of it", HALF, vgpu_memory_policy="swap", vgpu_host_memory="63"),
    one("too much of it", HALF, vgpu_memory_policy="swap", vgpu_host_memory="4194305"),
    one("it with a suffix", HALF, vgpu_memory_policy="swap", vgpu_host_memory="8Gi"),
    one("it without the policy", HALF, vgpu_host_memory="64"),
    one("it without a slice", WHOLE, vgpu_memory_policy="swap"),
    one("loans", HALF, vgpu_memory_policy="soft", good=True),
    one("loans without a slice", WHOLE, vgpu_memory_policy="soft"),
    one("memory of the host beside loans", HALF, vgpu_memory_policy="soft", vgpu_host_memory="64"),
    one("a policy of memory that there is not", HALF, vgpu_memory_policy="hard"),
    one("memory of the host without a GPU", {}, vgpu_host_memory="x", good=True),
    one("a policy without a GPU", {}, vgpu_policy="strict", good=True),
    one("a model", WHOLE, gpu_models="T4", good=True),
    one("a model without a GPU", {}, gpu_models="T4"),
    one("a refused model without a GPU", {}, gpu_models_not="T4"),
    one("weights without a GPU", {}, gpu_model_weights="T4=3"),
    one("no model named", WHOLE, gpu_models=" , "),
    one("no model refused", HALF, gpu_models_not=""),
]


def expected(case: Case) -> str:
    """The sentence of the scheduler, "" for none."""
    wire = msgspec.convert(case.template, PodWire, strict=False)
    demand = PodProjector()(wire).spec.gpu
    return demand.problem if demand else ""


async def said(client: Client, namespace: str, template: Manifest) -> str:
    """The sentence of the API server, "" for none."""
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod = {**pod, "metadata": {**template.get("metadata", {}), "name": "p"}}
    body, query = msgspec.json.encode(pod), {"dryRun": "All"}
    try:
        await client.raw("POST", PODS.collection(namespace), query=query, body=body)
    except Invalid as error:
        _, policy, sentence = error.message.partition(POLICY)
        return sentence.partition(" denied request: ")[2] if policy else error.message
    return ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
async def test_the_api_server_says_what_the_scheduler_would_say(
    client: Client, namespace: str, case: Case
) -> None:
    sentence = await said(client, namespace, case.template)
    assert sentence == expected(case)
    assert bool(sentence) is not case.good


async def test_a_slot_is_for_slices_and_every_slice_has_one(client: Client, namespace: str) -> None:
    alone = one("", {names.VGPU: "1"}).template
    assert await said(client, namespace, alone) == (
        "container 'main' asks for alnair/vgpu without alnair/vgpu-memory: "
        "ask for alnair/vgpu-memory alone, and admission adds alnair/vgpu"
    )
    without = one("", HALF | {names.VGPU: "0"}).template
    assert "without which nothing holds it to its slice" in await said(client, namespace, without)
    by_hand = one("", HALF | {names.VGPU: "1"}).template
    assert await said(client, namespace, by_hand) == ""


async def test_a_name_of_ours_that_does_not_exist_is_told(client: Client, namespace: str) -> None:
    typo = one("", {"alnair/vgpu-mem": "1024"}).template
    assert await said(client, namespace, typo) == (
        "container 'main' asks for alnair/vgpu-mem, which no node offers: "
        "ask for alnair/vgpu-memory (MiB) and alnair/vgpu-compute (percent)"
    )


@pytest.mark.parametrize(
    ("resources", "kubernetes_says"),
    [
        ({"limits": HALF, "requests": {names.VGPU_MEMORY: "512"}}, "must be equal to"),
        ({"requests": HALF}, "Limit must be set for non overcommitable resources"),
        ({"limits": {names.VGPU_MEMORY: "1500m"}}, "must be an integer"),
    ],
)
async def test_kubernetes_itself_refuses_requests_that_are_not_the_limits(
    client: Client, namespace: str, resources: Manifest, kubernetes_says: str
) -> None:
    pod = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": resources}]},
    }
    with pytest.raises(Invalid, match=kubernetes_says):
        await client.create(PODS, pod, namespace)


def warnings(connection: Connection, path: str, manifest: Manifest) -> list[str]:
    """Create an object as kubectl does, and return the warnings that it would print."""
    context = connection.tls()
    assert context is not None
    certificate = asyncio.run(connection.credentials.current()).certificate
    assert certificate is not None
    connection.present(context, certificate)
    request = urllib.request.Request(
        connection.server + path,
        json.dumps(manifest).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, context=context) as answer:
        return answer.headers.get_all("Warning") or []


@pytest.mark.parametrize("kind", [DEPLOYMENTS, JOBS, CRON_JOBS], ids=lambda kind: str(kind.kind))
async def test_the_author_of_a_template_is_warned_at_once(
    client: Client, namespace: str, kind: Resource[Manifest]
) -> None:
    def workload(name: str, limits: dict[str, str]) -> Manifest:
        template = one("", limits).template
        template["metadata"]["labels"] = {"app": name}
        template["spec"]["schedulerName"] = names.SCHEDULER
        spec: Manifest = {"template": template}
        if kind is DEPLOYMENTS:
            spec |= {"selector": {"matchLabels": {"app": name}}, "replicas": 0}
        else:
            template["spec"]["restartPolicy"] = "Never"
            spec["suspend"] = True
        if kind is CRON_JOBS:
            spec = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": spec}}
        meta = {"name": name, "namespace": namespace}
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}

    path = kind.collection(namespace)
    wrong, good = workload("wrong", {names.VGPU_COMPUTE: "50"}), workload("good", HALF)
    [warning] = await asyncio.to_thread(warnings, client.connection, path, wrong)
    assert "container 'main' asks for alnair/vgpu-compute without alnair/vgpu-memory" in warning
    assert await asyncio.to_thread(warnings, client.connection, path, good) == []


SWAP, HOST_64 = {names.VGPU_MEMORY_POLICY: "swap"}, {names.VGPU_HOST_MEMORY: "64"}
NEITHER = "which most likely no node offers: write "
SLICE = NEITHER + "alnair/vgpu-memory (MiB) and alnair/vgpu-compute (percent)"


@pytest.mark.parametrize(
    ("limits", "annotations", "scheduler", "told"),
    [
        (WHOLE, {}, "", []),
        (HALF, {}, names.SCHEDULER, []),
        (HALF, {}, "volcano", []),
        (MIG, {}, "", []),
        ({"nvidia.com/gpumem": "1", "nvidia.com/gpu.shared": "1", "amd.com/gpu": "1"}, {}, "", []),
        (WHOLE, {names.GPU_MODELS: "A100", "example.com/gpu-model": "A100"}, "", []),
        ({"nvidia.com/gpus": "1"}, {}, "", [NEITHER + "nvidia.com/gpu"]),
        ({"nvidia.com/GPU": "1"}, {}, "", [NEITHER + "nvidia.com/gpu"]),
        ({"nvdia.com/gpu": "1"}, {}, "", [NEITHER + "nvidia.com/gpu"]),
        ({"alnair.io/vgpu-memory": "1024"}, {}, "", [SLICE]),
        ({"nvidia.com/gpu-memory": "1024"}, {}, "", [SLICE]),
        (WHOLE, {"ai.centaurus.io/gpu-model": "A100"}, "", ["gpu-model does nothing on a pod"]),
        (WHOLE, {names.TOPOLOGY_REQUIRED: "rack"}, "", ["does nothing on a pod"]),
        (HALF, {}, "", ["Write schedulerName: alnair-scheduler"]),
        (HALF | {"memory": "1Gi"}, {}, names.SCHEDULER, []),
        (HALF | {"memory": "256Gi"}, SWAP, names.SCHEDULER, []),
        (HALF, SWAP, names.SCHEDULER, []),
        (HALF | {"memory": "64Mi"}, SWAP, names.SCHEDULER, ["its limit of memory"]),
        (HALF | {"memory": "64Mi"}, SWAP | HOST_64, names.SCHEDULER, []),
    ],
)
async def test_what_is_most_likely_a_typing_error_is_taken_with_a_warning(
    client: Client,
    namespace: str,
    limits: dict[str, str],
    annotations: dict[str, str],
    scheduler: str,
    told: list[str],
) -> None:
    meta = {"name": "p", "annotations": annotations}
    spec = {"containers": [container("main", limits)], "schedulerName": scheduler}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    path = PODS.collection(namespace) + "?dryRun=All"
    found = await asyncio.to_thread(warnings, client.connection, path, pod)
    assert len(found) == len(told)
    assert all(words in warning for words, warning in zip(told, found, strict=True))


async def test_the_policies_fit_every_kind_that_they_are_for(client: Client) -> None:
    """The API server checks the types of a policy's expressions and tells what does not fit."""
    for policy in (await client.list(VALIDATING_POLICIES)).items:
        if policy["metadata"]["name"].endswith(".alnair"):
            assert "expressionWarnings" not in policy.get("status", {}).get("typeChecking", {})
