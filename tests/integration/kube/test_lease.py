"""Leader election on a real lease: handing over, being killed, losing the API server."""

import asyncio
import signal
import sys
import uuid
from pathlib import Path

import pytest

from alnair.kube.client import Client
from alnair.kube.errors import LeadershipLost
from alnair.kube.lease import LeaderElector
from alnair.kube.resources import LEASES
from alnair.local.controlplane import LocalCluster

#: Short, so that tests are; the relations are those of the defaults.
TIMES = {"lease_duration": 3, "renew_deadline": 2.0, "retry_period": 0.5}

CANDIDATE = """
import asyncio, sys
from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.lease import LeaderElector

async def lead():
    print("leading", flush=True)
    await asyncio.Event().wait()

async def main():
    async with Client(client_config.load(sys.argv[1])) as client:
        await LeaderElector(client, namespace="default", name=sys.argv[2], identity="child",
            lease_duration=3, renew_deadline=2.0, retry_period=0.5).run(lead)

asyncio.run(main())
"""


class Candidate:
    """An elector of this process and what became of it."""

    def __init__(self, client: Client, lease: str, identity: str) -> None:
        self.leads = asyncio.Event()
        self.story: list[str] = []
        self.elector = LeaderElector(
            client, namespace="default", name=lease, identity=identity, **TIMES
        )
        self.task = asyncio.create_task(
            self.elector.run(self._lead, lambda: self.story.append("stopped"))
        )

    async def _lead(self) -> None:
        self.story.append("started")
        self.leads.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.story.append("work ended")

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


@pytest.fixture
def lease() -> str:
    return f"lease-{uuid.uuid4().hex[:8]}"


async def test_one_of_two_leads_and_hands_over_at_once_when_it_ends_well(
    client: Client, lease: str
) -> None:
    first = Candidate(client, lease, "first")
    await asyncio.wait_for(first.leads.wait(), 20)
    second = Candidate(client, lease, "second")
    await asyncio.sleep(4)
    assert (first.elector.is_leader, second.elector.is_leader) == (True, False)
    assert second.elector.leader == "first"
    begin = asyncio.get_running_loop().time()
    await first.stop()
    assert first.story == ["started", "work ended", "stopped"]
    assert not first.elector.is_leader
    spec = (await client.get(LEASES, lease, "default"))["spec"]
    assert spec["holderIdentity"] in ("", "second"), "it gave its lease back"
    await asyncio.wait_for(second.leads.wait(), 20)
    assert asyncio.get_running_loop().time() - begin < 2  # not only when its lease is over
    spec = (await client.get(LEASES, lease, "default"))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("second", 1)
    await second.stop()
    spec = (await client.get(LEASES, lease, "default"))["spec"]
    assert spec["holderIdentity"] == ""


async def test_a_killed_leader_is_followed_after_its_lease_and_not_before(
    client: Client, cluster, lease: str, tmp_path: Path
) -> None:
    script = tmp_path / "candidate.py"
    script.write_text(CANDIDATE)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        script,
        cluster.kubeconfig(),
        lease,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 20) == b"leading\n"
    second = Candidate(client, lease, "second")
    await asyncio.sleep(1)
    killed = asyncio.get_running_loop().time()
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await asyncio.wait_for(second.leads.wait(), 20)
    took = asyncio.get_running_loop().time() - killed
    # The last renewal lies at most a retry period (and its request) before the kill.
    assert 3 - 0.5 - 0.5 <= took < 3 + 2 * 0.6 + 1
    await second.stop()


async def test_a_leader_that_cannot_renew_stops_by_its_deadline_and_takes_part_again(
    cluster: LocalCluster, client: Client, lease: str
) -> None:
    first = Candidate(client, lease, "first")
    await asyncio.wait_for(first.leads.wait(), 20)
    await cluster.stop("kube-apiserver", signal.SIGKILL)
    try:
        deadline = first.elector.deadline
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(first.task, 10)
        assert first.story == ["started", "work ended", "stopped"]
        assert not first.elector.is_leader
        assert asyncio.get_running_loop().time() - deadline < 1
        again = Candidate(client, lease, "first")
    finally:
        await cluster.start("kube-apiserver")
    await asyncio.wait_for(again.leads.wait(), 20)
    await again.stop()


async def test_a_lease_taken_by_force_ends_leadership(client: Client, lease: str) -> None:
    first = Candidate(client, lease, "first")
    await asyncio.wait_for(first.leads.wait(), 20)
    thief = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}}
    await client.merge_patch(LEASES, lease, thief, "default")
    with pytest.raises(LeadershipLost, match="'thief'"):
        await asyncio.wait_for(first.task, 20)


async def test_what_others_wrote_into_the_lease_is_kept(client: Client, lease: str) -> None:
    manifest = {
        "metadata": {"name": lease, "labels": {"team": "a"}},
        "spec": {"holderIdentity": ""},
    }
    await client.create(LEASES, manifest, "default")
    first = Candidate(client, lease, "first")
    await asyncio.wait_for(first.leads.wait(), 20)
    await first.stop()
    assert (await client.get(LEASES, lease, "default"))["metadata"]["labels"] == {"team": "a"}


async def test_the_end_of_the_work_is_the_end_of_leading(client: Client, lease: str) -> None:
    async def fail() -> None:
        raise RuntimeError("work")

    elector = LeaderElector(client, namespace="default", name=lease, identity="a", **TIMES)
    with pytest.raises(RuntimeError, match="work"):
        await elector.run(fail)
    spec = (await client.get(LEASES, lease, "default"))["spec"]
    assert spec["holderIdentity"] == ""
