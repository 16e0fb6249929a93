"""The controller keeps the lives of jobs, whoever is killed meanwhile."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from alnair.history.database import opening, queries
from alnair.history.database.addresses import HistoryError
from alnair.history.database.queries import Details, Filter, Job
from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.kube.resources import PODS, Manifest, grouped
from alnair.local.controlplane import LocalCluster
from alnair.model import names, usage
from alnair.model.usage import Digest, PodUsage
from kit.command import COMMAND
from kit.job_history import is_true
from kit.live.scheduler_process import SHORT_LEASE, StartController, eventually, pod
from kit.outbox import Outbox
from kit.postgres import Postgres

JOBS = grouped("batch", "v1", "jobs", "Job")
#: In whole seconds, as the API server tells times, pods that end at once may not overlap.
LASTS = {"annotations": {"ai.centaurus.io/simulated-duration": "3s"}}
#: For who leads to the end, also where this machine stands still for seconds.
OFTEN = ("--history-period=0.3", "--annotate-owners=0.5")
FAST = (*SHORT_LEASE, *OFTEN)


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    server.start()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a history, of each kind."""
    if request.param == "sqlite":
        yield str(tmp_path / "history.db")
        return
    server = request.getfixturevalue("postgres")
    yield server.url


def jobs(history: str, **wanted: Any) -> list[Job]:
    try:
        with opening.readable(history) as connection:
            return queries.jobs(connection, Filter(**wanted))
    except HistoryError:
        return []  # the controller has not made it yet, or the server is away


def details(history: str, namespace: str, kind: str, name: str) -> Details:
    with opening.readable(history) as connection:
        found = queries.find(connection, namespace, kind, name)
    assert found is not None
    return found


def sums_are_true(history: str) -> bool:
    engine = opening.open_history(history)
    try:
        return is_true(engine)
    finally:
        engine.dispose()


def job(namespace: str, name: str, completions: int = 2, gpus: int = 1) -> Manifest:
    limits = {"nvidia.com/gpu": gpus}
    spec = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "pause", "resources": {"limits": limits}}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {"team": "red"}},
        "spec": {
            "completions": completions,
            "parallelism": completions,
            "template": {"metadata": LASTS, "spec": spec},
        },
    }


def life(namespace: str, name: str, uid: str, *, ended: bool = True) -> PodUsage:
    """What an agent says of a pod that has run for 100 s."""
    now = time.time()
    return PodUsage(
        v=1,
        node="n",
        namespace=namespace,
        pod=name,
        uid=uid,
        started=now - 100.0,
        ended=now if ended else None,
        metrics={
            usage.GPU_UTIL: Digest(40.0, 90.0, 80.0, 100.0),
            usage.GPU_MEMORY_MIB: Digest(1000.0, 2048.0, 2000.0, 100.0),
        },
    )


async def made(admin: Client, namespace: str, name: str) -> str:
    """Make a lone pod; return its uid."""
    found = await admin.create(PODS, pod(namespace, name, scheduler="default-scheduler"))
    return str(found["metadata"]["uid"])


async def test_a_job_is_kept_with_its_times_gpus_and_outcome_after_it_was_deleted(
    admin: Client, namespace: str, start_controller: StartController, history: str
) -> None:
    start_controller("--history", history, *FAST)
    await admin.create(JOBS, job(namespace, "train-7"))

    async def completed() -> bool:  # its pods may be told of a moment later
        return [(one.state, one.pods) for one in jobs(history, namespace=namespace)] == [
            ("completed", 2)
        ]

    await eventually(completed, 60, "the job and both pods are completed in the history")
    (found,) = jobs(history, namespace=namespace)
    assert (found.kind, found.name, found.series, found.user) == (
        "Job", "train-7", "Job/train-#", namespace,
    )  # fmt: skip
    assert (found.pods, found.gpus, found.gpu_model) == (2, 2.0, "T4")
    assert found.started is not None
    assert found.completed is not None
    assert found.submitted <= found.started <= found.completed
    assert found.duration == found.completed - found.started
    await admin.delete(JOBS, "train-7", namespace, propagation="Background")

    async def gone() -> bool:
        return not (await admin.list(PODS, namespace)).items

    await eventually(gone)

    async def ended() -> bool:
        kept = details(history, namespace, "job", "train-7")
        return [one.outcome for one in kept.pods] == ["completed"] * 2

    await eventually(ended, 60, "both pods have their outcome in the history")
    kept = details(history, namespace, "job", "train-7")
    assert kept.job.state == "completed"
    assert kept.labels["team"] == "red"


async def test_nothing_is_lost_or_doubled_when_the_controller_is_killed_again_and_again(
    admin: Client, namespace: str, start_controller: StartController, history: str
) -> None:
    async with Outbox(page=3) as outbox:
        flags = ("--history", history, "--outbox", outbox.url, *FAST)
        states: dict[str, str] = {}
        for round_ in range(3):
            controller = start_controller(*flags)
            uids = {}
            for number in range(6):
                name = f"lone-{round_}-{number}"
                uids[name] = await made(admin, namespace, name)
                states[name] = "running"
            last = name

            async def written() -> bool:
                # Now the first, now the last: the moment of the kill differs.
                wanted = last if round_ % 2 else f"lone-{round_}-0"  # noqa: B023
                return wanted in {one.name for one in jobs(history, namespace=namespace)}

            await eventually(written, 120, "something is written")
            for name in list(uids)[:3]:  # the last of them go while nobody looks
                await admin.delete(PODS, name, namespace, grace_seconds=0)
                outbox.add(life(namespace, name, uids[name]))
                states[name] = "deleted"
                if name.endswith("-1"):
                    controller.signal(signal.SIGKILL)
            outbox.add(life(namespace, f"unseen-{round_}", f"uid-{namespace}-{round_}"))
            states[f"unseen-{round_}"] = "deleted"
        start_controller(*flags)

        async def all_there() -> bool:
            found = jobs(history, namespace=namespace, limit=1000)
            return {one.name: one.state for one in found} == states and not outbox.held

        await eventually(all_there, 120, "all is in the history, and the outbox is empty")
        found = jobs(history, namespace=namespace, limit=1000)
        assert sorted(one.name for one in found) == sorted(states)
        for name in [name for name, state in states.items() if state == "deleted"]:
            (life_of,) = details(history, namespace, "Pod", name).pods
            assert life_of.usage is not None
            assert life_of.usage["metrics"]["gpu_util"]["mean"] == 40.0
        assert sums_are_true(history)
        assert outbox.forgotten == sorted(outbox.forgotten)
        assert outbox.forgotten[-1] == outbox.last


async def test_nothing_is_lost_when_the_database_and_the_api_server_are_killed(
    admin: Client,
    namespace: str,
    start_controller: StartController,
    gpu_cluster: LocalCluster,
    postgres: Postgres,
) -> None:
    async with Outbox() as outbox:
        start_controller("--history", postgres.url, "--outbox", outbox.url, *FAST)
        states = {}
        for round_ in range(3):
            for number in range(4):
                name = f"lone-{round_}-{number}"
                uid = await made(admin, namespace, name)
                states[name] = "running"
                if number == 1:
                    postgres.kill()
                if number % 2:
                    await admin.delete(PODS, name, namespace, grace_seconds=0)
                    outbox.add(life(namespace, name, uid))
                    states[name] = "deleted"
            if round_ == 1:
                await gpu_cluster.restart("kube-apiserver", signal.SIGKILL)
            postgres.start()

            async def server_answers() -> bool:
                try:
                    await admin.list(PODS, namespace)
                except KubeError:
                    return False
                return True

            await eventually(server_answers, 60, "the API server is back")

        async def all_there() -> bool:
            there = jobs(postgres.url, namespace=namespace, limit=1000)
            return {one.name: one.state for one in there} == states and not outbox.held

        await eventually(all_there, 60, "all is in the history")
        assert len(jobs(postgres.url, namespace=namespace, limit=1000)) == len(states)
        assert sums_are_true(postgres.url)
        for name in [name for name, state in states.items() if state == "deleted"]:
            (life_of,) = details(postgres.url, namespace, "Pod", name).pods
            assert life_of.usage is not None


async def test_a_job_says_what_its_pods_used_after_they_were_deleted(
    admin: Client, namespace: str, start_controller: StartController, tmp_path: Path
) -> None:
    async with Outbox() as outbox:
        history = str(tmp_path / "history.db")
        start_controller("--history", history, "--outbox", outbox.url, *FAST)
        await admin.create(JOBS, job(namespace, "train"))

        async def two() -> bool:
            return len((await admin.list(PODS, namespace)).items) == 2

        await eventually(two)
        for one in (await admin.list(PODS, namespace)).items:
            meta = one["metadata"]
            outbox.add(life(namespace, meta["name"], meta["uid"]))

        async def told() -> dict[str, Any]:
            found = await admin.get(JOBS, "train", namespace)
            text = found["metadata"].get("annotations", {}).get(names.UTILIZATION, "{}")
            return dict(json.loads(text))

        async def both() -> bool:
            return len((await told()).get("of", ())) == 2

        await eventually(both, 60, "the job is annotated")
        await admin.delete_collection(PODS, namespace, grace_seconds=0)
        document = await told()
        assert document["max"] == {"gpu_memory_mib": 2048.0, "gpu_util": 90.0}
        assert document["of"][0]["gpu_util"] == {"mean": 40.0, "max": 90.0}
        found = await admin.get(JOBS, "train", namespace)
        managers = {one["manager"]: one for one in found["metadata"]["managedFields"]}
        ours = managers[names.CONTROLLER_OWNERS]["fieldsV1"]["f:metadata"]
        assert ours == {"f:annotations": {f"f:{names.UTILIZATION}": {}}}


async def test_the_controller_answers_for_its_history(
    admin: Client,
    namespace: str,
    gpu_cluster: LocalCluster,
    start_controller: StartController,
    tmp_path: Path,
) -> None:
    start_controller("--history", str(tmp_path / "history.db"), *OFTEN)
    await admin.create(PODS, pod(namespace, "lone", scheduler="default-scheduler"))
    at = ("--kubeconfig", str(gpu_cluster.kubeconfig()))

    async def listed() -> bool:
        said = await ran("history", "-n", namespace, "--json", *at)
        return said[0] == 0 and [one["name"] for one in json.loads(said[1])["jobs"]] == ["lone"]

    await eventually(listed, 60, "the controller lists the pod")
    code, said, _ = await ran("history", "show", f"{namespace}/pod/lone", "--json", *at)
    assert (code, json.loads(said)["job"]["kind"]) == (0, "Pod")
    code, said, _ = await ran("history", "show", "lone", "-n", namespace, "--json", *at)
    assert (code, json.loads(said)["job"]["namespace"]) == (0, namespace)
    code, said, why = await ran("history", "show", f"{namespace}/pod/none", *at)
    assert (code, said) == (3, "")
    assert "there is no such job in the history" in why
    code, said, why = await ran("report", "efficiency", "--since", "1h", "--json", *at)
    assert code == 0, why
    assert json.loads(said)["namespace"] is not None
    code, _, why = await ran("history", "--state", "bad", *at)
    assert code == 2
    assert "state=bad: write one of" in why


async def ran(*arguments: str) -> tuple[int, str, str]:
    """Run `alnair`; return its exit code and what it said."""
    environment = {key: value for key, value in os.environ.items() if key != "ALNAIR_HISTORY"}
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()
