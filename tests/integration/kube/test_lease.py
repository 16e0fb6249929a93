"""Leader election on a real lease: handing over, being killed, losing the API server."""

import asyncio
import signal
import sys
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from alnair.kube.client import Client
from alnair.kube.errors import LeadershipLost
from alnair.kube.lease import LeaderElector
from alnair.kube.resources import LEASES
from alnair.local.controlplane import LocalCluster
from kit.live.scheduler_process import eventually

#: For who loses a lease: short, so that tests are; the relations are those of the defaults.
SHORT: Final = {"lease_duration": 3, "renew_deadline": 2.0, "retry_period": 0.5}
#: For who keeps it, also where this machine stands still for seconds: longer than any test waits.
LONG: Final = {"lease_duration": 120, "renew_deadline": 80.0, "retry_period": 0.5}

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

    def __init__(
        self, client: Client, lease: str, identity: str, times: dict[str, Any] = LONG
    ) -> None:
        self.leads = asyncio.Event()
        self.story: list[str] = []
        self.elector = LeaderElector(
            client, namespace="default", name=lease, identity=identity, **times
        )
        self.task = asyncio.create_task(self.elector.run(self._lead))

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
    renewals = set()

    async def is_renewed() -> bool:
        renewals.add((await client.get(LEASES, lease, "default"))["spec"]["renewTime"])
        return len(renewals) > 3 and second.elector.leader == "first"

    await eventually(is_renewed)
    assert (first.elector.is_leader, second.elector.is_leader) == (True, False)
    await first.stop()
    assert first.story == ["started", "work ended"]
    assert not first.elector.is_leader
    spec = (await client.get(LEASES, lease, "default"))["spec"]
    assert spec["holderIdentity"] in ("", "second"), "it gave its lease back"
    await asyncio.wait_for(second.leads.wait(), 20)  # and not only when the lease would be over
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
    second = Candidate(client, lease, "second", SHORT)

    async def waits() -> bool:
        return second.elector.leader == "child"

    await eventually(waits)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    last = (await client.get(LEASES, lease, "default"))["spec"]
    assert last["holderIdentity"] == "child"
    await asyncio.wait_for(second.leads.wait(), 20)
    spec = (await client.get(LEASES, lease, "default"))["spec"]
    took = datetime.fromisoformat(spec["acquireTime"]) - datetime.fromisoformat(last["renewTime"])
    assert took.total_seconds() >= SHORT["lease_duration"]
    await second.stop()


async def test_a_leader_that_cannot_renew_stops_by_its_deadline_and_takes_part_again(
    cluster: LocalCluster, client: Client, lease: str
) -> None:
    first = Candidate(client, lease, "first", SHORT)
    await asyncio.wait_for(first.leads.wait(), 20)
    await cluster.stop("kube-apiserver", signal.SIGKILL)
    try:
        late = asyncio.create_task(after(first.elector.deadline))
        await asyncio.wait((first.task, late), return_when=asyncio.FIRST_COMPLETED)
        assert not late.done()
        late.cancel()
        with pytest.raises(LeadershipLost):
            await first.task
        assert first.story == ["started", "work ended"]
        assert not first.elector.is_leader
        again = Candidate(client, lease, "first")
    finally:
        await cluster.start("kube-apiserver")
    await asyncio.wait_for(again.leads.wait(), 20)
    await again.stop()


async def after(deadline: float) -> None:
    """Wait for it, and then for a second's turns of the loop, so that a standstill is none."""
    await asyncio.sleep(max(0.0, deadline - asyncio.get_running_loop().time()))
    for _ in range(100):
        await asyncio.sleep(0.01)


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

    elector = LeaderElector(client, namespace="default", name=lease, identity="a", **LONG)
    with pytest.raises(RuntimeError, match="work"):
        await elector.run(fail)
    spec = (await client.get(LEASES, lease, "default"))["spec"]
    assert spec["holderIdentity"] == ""
