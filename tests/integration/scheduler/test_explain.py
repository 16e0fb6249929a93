"""`alnair explain` on a real API server: by the scheduler, and without it."""

import subprocess
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import EVENTS, PODGROUPS, PODS
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.command import alnair, last_json
from kit.live.scheduler_process import StartScheduler, bound, eventually, holder, pod

#: Of each of the cluster's six nodes.
GPUS = 4


def asked(cluster: LocalCluster, name: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return alnair("explain", f"pod/{name}", "--kubeconfig", cluster.kubeconfig(), *flags)


def told(cluster: LocalCluster, namespace: str, name: str, *flags: str) -> Any:
    done = asked(cluster, name, "-n", namespace, "--json", *flags)
    assert done.returncode == 0, done.stderr
    return last_json(done)


async def refused(client: Client, namespace: str, name: str) -> bool:
    conditions = (await client.get(PODS, name, namespace))["status"].get("conditions", ())
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)


async def test_the_scheduler_and_the_offline_answer_agree_and_the_change_that_is_named_helps(
    gpu_cluster: LocalCluster,
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
) -> None:
    start_scheduler()
    await admin.create(PODS, pod(namespace, "wide", limits={names.GPU: str(GPUS + 2)}))
    await eventually(lambda: refused(admin, namespace, "wide"))
    live = told(gpu_cluster, namespace, "wide")
    assert (live["source"], live["stage"], live["fits"]) == ("scheduler", "waiting", False)
    assert live["queue"]["place"] == "unschedulable"
    assert live["changes"][0]["text"] == (f"ask for {GPUS} of {names.GPU} instead of {GPUS + 2}")
    offline = told(gpu_cluster, namespace, "wide", "--offline")
    assert offline["source"] == "offline"
    for key in ("message", "predicates", "closest", "changes"):
        assert offline[key] == live[key], key
    shown = asked(gpu_cluster, "wide", "-n", namespace)
    assert "each of these alone lets it fit" in shown.stdout
    await admin.create(PODS, pod(namespace, "narrower", limits={names.GPU: str(GPUS)}))

    async def placed() -> bool:
        return "narrower" in await bound(admin, namespace)

    await eventually(placed, what="the pod, changed as was said")
    there: dict[str, Any] = {}

    async def is_known() -> bool:  # the scheduler hears of its Binding after the effect
        there.update(told(gpu_cluster, namespace, "narrower"))
        return bool(there["stage"] == "bound")

    await eventually(is_known, what=lambda: there)
    assert there["node"]
    assert there["since"] > 0


async def test_without_a_scheduler_and_for_another_ones_pod_it_is_computed_and_says_so(
    gpu_cluster: LocalCluster, admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    await admin.create(PODS, pod(namespace, "big", cpu="9000"))
    alone = told(gpu_cluster, namespace, "big")
    assert alone["source"] == "offline"
    assert alone["notes"] == [
        "no scheduler leads: computed here from the API objects, so without its queue"
    ]
    assert "Insufficient cpu" in alone["message"]
    await admin.create(PODS, pod(namespace, "theirs", cpu="9000", scheduler="volcano"))
    foreign = told(gpu_cluster, namespace, "theirs")
    assert foreign["scheduler"] == "volcano"
    assert "a pod of the scheduler 'volcano'" in foreign["notes"][0]
    assert "Insufficient cpu" in foreign["message"]

    first = start_scheduler()

    async def leads() -> bool:
        return await holder(admin) == first.identity

    await eventually(leads)
    first.process.kill()
    first.process.wait()
    dead = told(gpu_cluster, namespace, "big")
    assert "cannot be reached at http://" in dead["notes"][0]


async def test_a_gang_says_how_much_of_it_fits(
    gpu_cluster: LocalCluster, admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": namespace},
        "spec": {"minMember": 9},
    }
    await admin.create(PODGROUPS, group)
    for number in range(9):
        manifest = pod(
            namespace,
            f"g-{number}",
            limits={names.GPU: str(GPUS)},
            labels={names.POD_GROUP_LABEL: "g"},
        )
        await admin.create(PODS, manifest)

    async def all_were_tried() -> bool:  # before, it is refused as its group is not complete
        found = await admin.get(PODS, "g-0", namespace)
        return "of the 9 pods that must start together" in str(found["status"].get("conditions"))

    await eventually(all_were_tried)
    found = told(gpu_cluster, namespace, "g-0")
    assert found["gang"]["min_member"] == 9
    assert found["gang"]["fit"] == 6
    assert f"{found['gang']['fit']} of the 9 pods that must start together" in found["message"]
    half = f"ask for {GPUS // 2} of {names.GPU} instead of {GPUS}"
    assert half in [change["text"] for change in found["changes"]]


async def test_what_is_not_there_is_said_with_what_to_do(
    gpu_cluster: LocalCluster, admin: Client, namespace: str
) -> None:
    await admin.create(PODS, pod(namespace, "lonely-pod"))
    done = asked(gpu_cluster, "lonely-pod", "-n", "default")
    assert done.returncode == 1
    assert f"there is one in {namespace}: add '-n {namespace}'" in done.stderr
    done = asked(gpu_cluster, "nobody", "-n", namespace)
    assert done.returncode == 1
    assert "kubectl get pods -A" in done.stderr
    assert asked(gpu_cluster, "job/x", "-n", namespace).returncode == 2
    where = ("-n", namespace, "--kubeconfig", gpu_cluster.kubeconfig())
    done = alnair("explain", "job/nothing", *where)
    assert done.returncode == 1
    assert "nothing" in done.stderr
    assert alnair("explain", "x", "--kubeconfig", "/none").returncode == 3


@pytest.mark.usefixtures("gpu_cluster")
async def test_a_pod_that_stays_refused_gets_an_event_per_change_of_the_reasons_only(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    await admin.create(PODS, pod(namespace, "big", cpu="900"))
    await eventually(lambda: refused(admin, namespace, "big"))
    for number in range(12):  # the cluster changes all the time, the reasons do not
        await admin.create(PODS, pod(namespace, f"small-{number}", cpu="50m"))
        await admin.delete(PODS, f"small-{number}", namespace, grace_seconds=0)

    async def failures() -> int:
        found = (await admin.list(EVENTS, namespace)).items
        return sum(
            int(e.get("count") or e.get("deprecatedCount") or 1)
            for e in found
            if e["reason"] == "FailedScheduling"
            and (e.get("involvedObject") or e.get("regarding"))["name"] == "big"
        )

    async def told_once() -> bool:
        return await failures() >= 1

    await eventually(told_once)
    assert await failures() == 1
