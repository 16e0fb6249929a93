"""`alnair replay` against a real API server, our scheduler and the real kube-scheduler."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import NAMESPACES, NODES, PODS
from alnair.local.controlplane import LocalCluster
from kit.command import COMMAND, alnair, last_json
from kit.live.scheduler_process import bound, eventually

from .conftest import COUNT

Trace = Callable[..., tuple[object, ...]]
KEYS = {
    "pods",
    "placed",
    "pending",
    "reasons",
    "gpu_allocated_pct",
    "frag_pct",
    "decision_p50_us",
    "decision_p99_us",
    "e2e_p50_ms",
    "e2e_p99_ms",
    "pods_per_second",
}


def at(cluster: LocalCluster) -> tuple[object, ...]:
    return ("--kubeconfig", cluster.kubeconfig())


def namespace_of(options: tuple[object, ...]) -> str:
    return str(options[options.index("--namespace") + 1])


def test_a_trace_is_placed_reported_and_proved(
    replay_cluster: LocalCluster, small_trace: Trace
) -> None:
    options = small_trace()
    done = alnair("replay", *options, "--json", *at(replay_cluster))
    assert done.returncode == 0, done.stderr
    report = last_json(done)
    assert set(report) == KEYS
    assert report["pods"] == COUNT == report["placed"] + report["pending"]
    # 9 ask for more cores than a node has, 5 name a model that no node has; one does both.
    assert report["pending"] == sum(report["reasons"].values()) == 13
    assert any("Insufficient cpu" in reason for reason in report["reasons"])
    assert all(report[key] > 0 for key in KEYS - {"reasons"})
    assert 0 < report["frag_pct"] < 100
    check = ("check", "--namespace", namespace_of(options), "--expect-pods", COUNT)
    checked = alnair(*check, *at(replay_cluster))
    assert checked.returncode == 0, checked.stdout + checked.stderr

    again = alnair("replay", *options, "--json", *at(replay_cluster))
    assert again.returncode == 0
    second = last_json(again)
    same = ("pods", "placed", "pending", "gpu_allocated_pct")
    assert [second[key] for key in same] == [report[key] for key in same]
    assert second["e2e_p50_ms"] is None, "nothing was created, so nothing was measured"

    fresh = alnair("replay", *options, "--fresh", "--limit", 10, *at(replay_cluster))
    assert fresh.returncode == 0, fresh.stderr
    assert "placed" in fresh.stdout
    checked = alnair("check", *check[1:-1], 10, *at(replay_cluster))
    assert checked.returncode == 0, checked.stdout


def test_a_foreign_scheduler_can_be_replayed_on_too(
    replay_cluster: LocalCluster, small_trace: Trace
) -> None:
    options = small_trace("--profile", "default-scheduler", cpu_only=True)
    done = alnair("replay", *options, "--json", *at(replay_cluster))
    assert done.returncode == 0, done.stderr
    report = last_json(done)
    assert (report["placed"], report["pending"]) == (91, 9)
    assert report["decision_p50_us"] is None
    assert report["e2e_p50_ms"] > 0


def test_another_list_with_the_same_names_is_not_taken_for_the_same_replay(
    replay_cluster: LocalCluster, small_trace: Trace
) -> None:
    options = small_trace("--limit", 5, *at(replay_cluster))
    assert alnair("replay", *options).returncode == 0
    pods = Path(str(options[3]))
    pods.write_text(pods.read_text().replace("p003,1500,", "p003,1600,"))
    refused = alnair("replay", *options)
    assert refused.returncode == 1
    assert "p003 is there from another replay and asks for something else" in refused.stderr
    assert alnair("replay", *options, "--fresh").returncode == 0


async def has_pods(client: Client, options: Sequence[object], count: int) -> None:
    """Wait until a replay has made so many pods."""
    namespace = namespace_of(tuple(options))

    async def made() -> bool:
        return len((await client.list(PODS, namespace)).items) >= count

    await eventually(made, 60, f"{count} pods in {namespace}")


async def test_a_replay_that_was_killed_is_continued(
    replay_cluster: LocalCluster, admin: Client, small_trace: Trace
) -> None:
    options = [str(o) for o in small_trace("--json", *at(replay_cluster))]
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "replay",
        *options,
        "--rate",
        "10",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await has_pods(admin, options, 10)
    finally:
        process.kill()
        await process.wait()
    assert len((await admin.list(PODS, namespace_of(tuple(options)))).items) < COUNT
    done = await asyncio.to_thread(alnair, "replay", *options)
    assert done.returncode == 0, done.stderr
    assert last_json(done)["placed"] == COUNT - 13


async def test_an_interrupt_reports_what_is_known(
    replay_cluster: LocalCluster, admin: Client, small_trace: Trace
) -> None:
    options = small_trace("--json", "--rate", 5, *at(replay_cluster))
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "replay",
        *map(str, options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await has_pods(admin, options, 3)
    finally:
        process.send_signal(signal.SIGINT)
    output, said = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 130, said
    assert b'{"pods":100,"placed":' in output
    assert b"the same command goes on" in said


def test_without_a_scheduler_it_says_so_instead_of_waiting(
    replay_cluster: LocalCluster, small_trace: Trace
) -> None:
    nobody = small_trace("--profile", "nobody", "--patience", 2, "--limit", 3)
    done = alnair("replay", *nobody, *at(replay_cluster))
    assert done.returncode == 1
    assert "3 pods of nobody have had neither a node nor a reason for 2 s" in done.stderr
    assert "is a scheduler of the name 'nobody' running?" in done.stderr

    other = alnair("replay", *nobody[:6], *at(replay_cluster))
    assert other.returncode == 1
    assert "is there from a replay for scheduler nobody" in other.stderr
    assert "--fresh" in other.stderr


def test_in_a_given_order_each_pod_waits_for_the_decision_on_the_one_before(
    replay_cluster: LocalCluster, small_trace: Trace, tmp_path: Path
) -> None:
    order = tmp_path / "order.pods"
    order.write_text("p002\np001\np004\n")
    nobody = small_trace("--profile", "nobody", "--patience", 1, "--order", order)
    done = alnair("replay", *nobody, *at(replay_cluster))
    assert done.returncode == 1
    assert "1 pod of nobody has had neither a node nor a reason for 1 s" in done.stderr


async def test_a_scheduler_of_ours_that_died_is_named(
    replay_cluster: LocalCluster, small_trace: Trace
) -> None:
    options = small_trace("--patience", 2, "--limit", 3)
    await replay_cluster.stop("alnair-scheduler", signal.SIGKILL)
    try:
        done = await asyncio.to_thread(alnair, "replay", *options, *at(replay_cluster))
    finally:
        await replay_cluster.start("alnair-scheduler")
    assert done.returncode == 1
    assert "3 pods of alnair-scheduler have had neither a node nor a reason" in done.stderr
    # The dead one's lease may still be valid; either way it is said what to look at.
    assert "alnair scheduler" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        ("--order", "default-42.pods", "--tune", "1.3"),
        ("--limit", "0"),
        ("--rate", "-1"),
        ("--order", "no-such-file"),
        ("--pods", "no-such-list"),
        ("--namespace", "Bad_NS"),
    ],
)
def test_wrong_usage_ends_with_2(wrong: tuple[str, ...]) -> None:
    assert alnair("replay", *wrong).returncode == 2


async def test_a_wrong_trace_is_told_before_anything_is_made(
    replay_cluster: LocalCluster, admin: Client, tmp_path: Path
) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nwrong,-4,1,1,T5\n")
    (tmp_path / "pods.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1300\np,1,1,0,0\n"
    )
    files = ("--trace", tmp_path / "nodes.csv", "--pods", tmp_path / "pods.csv")
    namespace = ("--namespace", "never-made")
    done = await asyncio.to_thread(alnair, "replay", *files, *namespace, *at(replay_cluster))
    assert done.returncode == 2
    for said in (
        "nodes.csv, line 2, column 'cpu_milli': -4 is negative",
        "nodes.csv, line 2, column 'model': GPU model 'T5' is not known",
        "pods.csv, line 2, column 'gpu_milli': asks for 130 % of a GPU",
        "pods.csv, line 3, column 'name': 'p' is on line 2 already",
    ):
        assert said in done.stderr
    names = [item["metadata"]["name"] for item in (await admin.list(NAMESPACES)).items]
    assert "never-made" not in names


async def test_nothing_is_made_in_a_cluster_where_machines_work(
    replay_cluster: LocalCluster, admin: Client, small_trace: Trace
) -> None:
    options = small_trace()
    await admin.create(NODES, {"metadata": {"name": "gpu-1"}})
    try:
        done = await asyncio.to_thread(alnair, "replay", *options, *at(replay_cluster))
    finally:
        await admin.delete(NODES, "gpu-1")
    assert done.returncode != 0
    assert "the cluster has nodes that are machines (gpu-1)" in done.stderr
    there = [item["metadata"]["name"] for item in (await admin.list(NAMESPACES)).items]
    assert namespace_of(options) not in there


async def test_a_pod_that_is_evicted_meanwhile_is_created_again(
    replay_cluster: LocalCluster, admin: Client, small_trace: Trace
) -> None:
    options = small_trace("--json", "--rate", 20, *at(replay_cluster))
    replaying = asyncio.create_task(asyncio.to_thread(alnair, "replay", *options))
    namespace = namespace_of(options)

    async def some() -> bool:
        return bool(await bound(admin, namespace))

    await eventually(some, 60, "a pod is bound")
    await admin.evict(namespace, next(iter(await bound(admin, namespace))))
    done = await replaying
    assert done.returncode == 0, done.stderr
    assert last_json(done)["placed"] == COUNT - 13
