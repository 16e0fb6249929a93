"""Everything that goes on and everybody who judges it, from the beginning of a load to its end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from alnair.kube.client import Client
from alnair.kube.resources import EVENTS
from alnair.local.controlplane import LocalCluster
from kit.live.churn import Checker
from kit.live.real_pods import until
from kit.manual_clock import running
from kit.real_node import node_shell
from kit.upgrades import leaders, limits
from kit.upgrades.kubelet_offer import POD_RESOURCES, KubeletOffer
from kit.upgrades.leaders import Leases
from kit.upgrades.load import Load
from kit.upgrades.pod_watch import PodWatch


class UnderLoad(msgspec.Struct):
    """What judges while pods run and come and go.

    Attributes:
        no_page: Tenants whose limits were on no page of the node at some look.
    """

    cluster: LocalCluster
    client: Client
    load: Load
    watch: PodWatch
    leases: Leases
    offer: KubeletOffer
    took: list[float] = []
    no_page: set[str] = set()

    def look(self) -> None:
        """Judge this instant, beside what is judged all the time."""
        self.no_page |= limits.of_pages(self.cluster)

    async def slices(self, count: int) -> None:
        """Wait until so many slices more have come and gone, or something is lost."""
        enough = self.load.done["slice"] + count

        async def have_come() -> bool:
            return self.load.done["slice"] >= enough or bool(self.watch.lost)

        await until(have_come, f"{count} more slices come and go")


@asynccontextmanager
async def under_load(
    cluster: LocalCluster, client: Client, audits: Path, folder: Path, refused: str = ""
) -> AsyncIterator[UnderLoad]:
    """Have the load while the block is run, and then judge.

    Args:
        cluster: With Alnair installed.
        client: Of an administrator.
        audits: Where the API server's audit log is.
        folder: To write to.
        refused: A reason for which pods may be lost: that of an older agent.

    Raises:
        AssertionError: Something was lost, lifted or led twice.
    """
    watch, leases = PodWatch(client), Leases(client)
    socket = node_shell.root(cluster.layout.folder) / POD_RESOURCES
    offer, load, stop = KubeletOffer(socket), Load(client, watch), asyncio.Event()
    seen = UnderLoad(cluster, client, load, watch, leases, offer, [], set())
    checker = Checker(cluster, folder, gang_grace=5.0)
    try:
        async with running(watch.run()), running(leases.run()), running(offer.run()):
            await load.begin()
            comes_and_goes = asyncio.create_task(load.run(stop))
            try:
                yield seen
            finally:
                stop.set()
                await comes_and_goes
            watch.end()
            held = await limits.of_programs(client)
            if watch.lost:
                await _show_events(client)
        checked = checker.result()
    finally:
        checker.close()
    log = audits / f"{cluster.name}.log"
    await asyncio.to_thread(leaders.settled, log)
    print(*await watch.told(), sep="\n")
    await load.end()  # whatever is found: others use the cluster, too
    _judge(seen, held, checked, leaders.writes(log), refused)


async def _show_events(client: Client) -> None:
    """Print why pods did not start or had to go: by their end, their events are all there is."""
    for event in (await client.list(EVENTS)).items:
        if event["type"] != "Normal":
            about = event["involvedObject"]
            print(event["lastTimestamp"], about["name"], event["reason"], event["message"])


def _judge(
    seen: UnderLoad,
    held: limits.Limits,
    checked: Any,
    writes: list[leaders.Write],
    refused: str,
) -> None:
    faults = leaders.judge(seen.leases, writes)
    lost = {name: why for name, why in seen.watch.lost.items() if not (refused and refused in why)}
    terms = {name: sum(bool(t.holder) for t in own) for name, own in seen.leases.terms.items()}
    figures = {
        "turns": len(seen.took),
        "seconds of turns": sorted(round(one, 1) for one in seen.took),
        "pods": seen.load.done,
        "lost": len(lost),
        "refused by the kubelet of an older agent": len(seen.watch.lost) - len(lost),
        "refusals of memory": held.refusals,
        "share of the busy one": held.share,
        "limits lifted": len(held.faults) + len(seen.no_page),
        "decisions": len(writes),
        "terms": terms,
        "double leaders": len(faults),
        "longest on simulated nodes": seen.watch.longest(real=False),
        "longest on the real node": seen.watch.longest(real=True),
        "longest without a binding": round(seen.watch.pause(), 2),
        "the kubelet was asked": seen.offer.asked,
        "it had no slices for": sorted(round(one, 3) for one in seen.offer.gaps),
        "violations": len(checked["violations"]),
    }
    print("upgrades:", json.dumps(figures))
    print(*seen.watch.lost.items(), *faults[:20], *held.faults, sep="\n")
    assert lost == {}
    assert (held.faults, seen.no_page) == ([], set())
    assert faults == []
    assert checked["violations"] == []
    # Nothing of this is so as nobody looked.
    assert all((held.refusals, seen.offer.asked, *terms.values()))
    assert {write.component for write in writes} == set(terms)
