"""`alnair explain` of mistyped names, of what two changes mend, and of pods that have a node."""

import datetime as dt
from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import LEASES, NODES, PODS
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.command import alnair, last_json
from kit.live.scheduler_process import StartScheduler, bound, eventually, holder, pod

#: Of each of the cluster's six nodes.
GPUS = 4


def told(cluster: LocalCluster, namespace: str, name: str, *flags: str) -> Any:
    done = alnair(
        "explain", name, "-n", namespace, "--kubeconfig", cluster.kubeconfig(), "--json", *flags
    )
    assert done.returncode == 0, done.stderr
    return last_json(done)


def shown(cluster: LocalCluster, namespace: str, name: str) -> str:
    done = alnair("explain", name, "-n", namespace, "--kubeconfig", cluster.kubeconfig())
    assert done.returncode == 0, done.stderr
    return done.stdout


async def refused(client: Client, namespace: str, name: str) -> bool:
    conditions = (await client.get(PODS, name, namespace))["status"].get("conditions", ())
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)


async def test_a_mistyped_scheduler_name_is_said_with_the_near_one_and_that_one_places_the_pod(
    gpu_cluster: LocalCluster, admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    await admin.create(PODS, pod(namespace, "typo", scheduler="alnair-schedular"))
    alone = told(gpu_cluster, namespace, "typo")
    assert (alone["stage"], alone["unserved"]["source"]) == ("unserved", "built-in")
    first = start_scheduler()

    async def leads() -> bool:
        return await holder(admin) == first.identity

    await eventually(leads)

    async def answers() -> bool:
        return bool(told(gpu_cluster, namespace, "typo")["unserved"]["source"] == "scheduler")

    await eventually(answers)
    found = told(gpu_cluster, namespace, "typo")
    assert (found["stage"], found["fits"]) == ("unserved", False)
    assert found["unserved"]["served"] == sorted(names.SCHEDULERS)
    assert found["unserved"]["near"] == [names.SCHEDULER]
    assert found["changes"][0]["text"] == f"write spec.schedulerName: {names.SCHEDULER}"
    text = shown(gpu_cluster, namespace, "typo")
    assert "no scheduler of Alnair serves the name 'alnair-schedular'" in text
    assert f"did you mean {names.SCHEDULER}?" in text
    assert "nothing is seen here of another scheduler named alnair-schedular" in text
    await admin.create(PODS, pod(namespace, "right"))

    async def placed() -> bool:
        return "right" in await bound(admin, namespace)

    await eventually(placed)
    assert "typo" not in await bound(admin, namespace)


async def test_a_pod_of_kube_scheduler_is_said_to_be_its(
    gpu_cluster: LocalCluster, admin: Client, namespace: str
) -> None:
    await admin.create(PODS, pod(namespace, "big", cpu="9000", scheduler="default-scheduler"))
    await eventually(lambda: refused(admin, namespace, "big"))
    found = told(gpu_cluster, namespace, "big")
    assert found["stage"] == "unserved"
    assert found["unserved"]["near"] == []
    assert "a scheduler has tried it" in found["unserved"]["elsewhere"]
    # The one of the local cluster elects no leader, as one that stands alone need not.
    now = dt.datetime.now(dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    lease = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        # Nobody renews it, and it is not to be over before the test.
        "spec": {"holderIdentity": "host-1", "leaseDurationSeconds": 600, "renewTime": now},
    }
    await admin.create(LEASES, lease)
    try:
        found = told(gpu_cluster, namespace, "big")
        assert "kube-scheduler runs here (host-1)" in found["unserved"]["elsewhere"]
        await admin.create(PODS, pod(namespace, "swapped", scheduler="defualt-scheduler"))
        found = told(gpu_cluster, namespace, "swapped")
        assert found["unserved"]["near"] == ["default-scheduler"]
        assert found["unserved"]["elsewhere"] == ""
    finally:
        await admin.delete(LEASES, "kube-scheduler", "kube-system")


async def test_a_profile_of_ones_own_is_served_and_its_name_is_a_near_one(
    gpu_cluster: LocalCluster,
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    tmp_path: Any,
) -> None:
    written = tmp_path / "scheduler.yaml"
    written.write_text(
        "apiVersion: scheduler.alnair.io/v1alpha1\nkind: SchedulerConfiguration\n"
        "profiles:\n- schedulerName: batch-gpus\n  like: alnair-cost-saving\n"
    )
    start_scheduler("--config", str(written))
    big = {"limits": {names.GPU: str(GPUS + 2)}}
    await admin.create(PODS, pod(namespace, "big", scheduler="batch-gpus", **big))
    await eventually(lambda: refused(admin, namespace, "big"))
    found = told(gpu_cluster, namespace, "big")
    assert (found["source"], found["stage"]) == ("scheduler", "waiting")
    await admin.create(PODS, pod(namespace, "typo", scheduler="batch-gpu"))

    async def is_known() -> bool:  # else it is said what Alnair comes with
        found.update(told(gpu_cluster, namespace, "typo"))
        return bool(found["unserved"]["source"] == "scheduler")

    await eventually(is_known, what=lambda: found)
    assert (found["unserved"]["served"], found["unserved"]["near"]) == (["batch-gpus"],) * 2


async def test_a_mistyped_selector_names_the_values_that_there_are_and_the_right_one_helps(
    gpu_cluster: LocalCluster, admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    node = (await admin.list(NODES)).items[0]["metadata"]["name"]
    wrong = pod(namespace, "wrong")
    wrong["spec"]["nodeSelector"] = {"kubernetes.io/hostname": f"{node}x"}
    await admin.create(PODS, wrong)
    await eventually(lambda: refused(admin, namespace, "wrong"))
    found = told(gpu_cluster, namespace, "wrong")
    (unmet,) = found["unmet"]
    assert (unmet["field"], unmet["key"]) == ("spec.nodeSelector", "kubernetes.io/hostname")
    assert unmet["values"][0] == {"value": node, "nodes": 1}
    assert len(unmet["values"]) == 6
    change = found["changes"][0]
    assert change["text"].startswith(f"select kubernetes.io/hostname={node} instead of")
    assert change["node"] == node
    for key in ("unmet", "changes"):
        assert told(gpu_cluster, namespace, "wrong", "--offline")[key] == found[key]
    right = pod(namespace, "right")
    right["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    await admin.create(PODS, right)

    async def placed() -> bool:
        return (await bound(admin, namespace)).get("right") == node

    await eventually(placed)


async def test_where_no_single_change_helps_a_pair_is_named_and_helps(
    gpu_cluster: LocalCluster, admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    wrong = pod(namespace, "wrong", limits={names.GPU: str(GPUS + 2)})
    wrong["spec"]["nodeSelector"] = {"no.such/label": "x"}
    await admin.create(PODS, wrong)
    await eventually(lambda: refused(admin, namespace, "wrong"))
    found = told(gpu_cluster, namespace, "wrong")
    assert found["changes"] == []
    pair = found["pairs"][0]
    assert pair["texts"] == [
        "drop no.such/label=x from the node selector",
        f"ask for {GPUS} of {names.GPU} instead of {GPUS + 2}",
    ]
    assert "but two together do" in shown(gpu_cluster, namespace, "wrong")
    await admin.create(PODS, pod(namespace, "right", limits={names.GPU: str(GPUS)}))

    async def placed() -> bool:
        return "right" in await bound(admin, namespace)

    await eventually(placed)


async def test_a_bound_pod_tells_its_gpus_and_the_next_best_node_live_and_offline(
    gpu_cluster: LocalCluster, admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    await admin.create(PODS, pod(namespace, "whole", limits={names.GPU: "2"}))
    sliced = {names.VGPU_MEMORY: "4096", names.VGPU_COMPUTE: "25"}
    await admin.create(PODS, pod(namespace, "slice", limits=sliced))

    async def placed() -> bool:
        return {"whole", "slice"} <= set(await bound(admin, namespace))

    await eventually(placed)
    where = await bound(admin, namespace)
    live: dict[str, Any] = {}

    async def are_known() -> bool:  # the scheduler hears of its Bindings after their effects
        live.update({name: told(gpu_cluster, namespace, name) for name in ("whole", "slice")})
        return {found["stage"] for found in live.values()} == {"bound"}

    await eventually(are_known, what=lambda: live)
    for name, found in live.items():
        assert (found["source"], found["stage"]) == ("scheduler", "bound")
        assert found["node"] == where[name]
        placement = found["placement"]
        assert placement["next"]["node"] != where[name]
        assert placement["score"] is not None
        offline = told(gpu_cluster, namespace, name, "--offline")
        assert offline["source"] == "offline"
        assert offline["placement"]["gpus"] == placement["gpus"]
        manifest = await admin.get(PODS, name, namespace)
        said = manifest["metadata"]["annotations"][names.GPU_ASSIGNMENT]
        assert all(gpu["uuid"] in said and gpu["model"] for gpu in placement["gpus"])
    assert [gpu["whole"] for gpu in live["whole"]["placement"]["gpus"]] == [True, True]
    (part,) = live["slice"]["placement"]["gpus"]
    assert (part["memory_mib"], part["compute"], part["whole"]) == (4096, 25, False)
    text = shown(gpu_cluster, namespace, "slice")
    assert "a slice of 4096 MiB and 25 %" in text
    assert "if it were decided on now, without it on the books" in text


async def test_a_bound_pod_whose_image_is_missing_says_so(
    gpu_cluster: LocalCluster, admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    await admin.create(PODS, pod(namespace, "app"))

    async def runs() -> bool:
        return bool((await admin.get(PODS, "app", namespace))["status"]["phase"] == "Running")

    await eventually(runs)
    assert not told(gpu_cluster, namespace, "app")["message"]
    (status,) = (await admin.get(PODS, "app", namespace))["status"]["containerStatuses"]
    pulling = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "torch:2x"'}
    status |= {"ready": False, "started": False, "state": {"waiting": pulling}}
    patch = {"status": {"phase": "Pending", "containerStatuses": [status]}}
    await admin.merge_patch(PODS, "app", patch, namespace, subresource="status")
    why = f"container {status['name']} does not run: ImagePullBackOff: {pulling['message']}"
    assert f"\n  its {why}\n" in shown(gpu_cluster, namespace, "app")
    assert told(gpu_cluster, namespace, "app", "--offline")["message"] == f"its {why}"


async def test_a_mistyped_pod_or_namespace_is_said_with_the_near_one(
    gpu_cluster: LocalCluster, admin: Client, namespace: str
) -> None:
    await admin.create(PODS, pod(namespace, "trainer-0"))
    for name, space, hint in (
        ("trainer", namespace, "did you mean trainer-0?"),
        ("trianer-0", namespace, "did you mean trainer-0?"),
        ("absent", f"{namespace}x", f"did you mean '-n {namespace}'?"),
    ):
        done = alnair("explain", name, "-n", space, "--kubeconfig", gpu_cluster.kubeconfig())
        assert done.returncode == 1
        assert hint in done.stderr
