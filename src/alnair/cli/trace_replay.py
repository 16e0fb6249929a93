"""Replays a trace with progress on stderr: what `alnair replay` and `alnair demo` share."""

import asyncio
from collections.abc import Sequence

from alnair.cli.interrupts import setting
from alnair.cli.progress import CountDisplay
from alnair.kube.client import Client
from alnair.live.replay.replayed_pods import Counts
from alnair.live.replay.session import ReplayOutcome, Settings, replay
from alnair.local import simnodes
from alnair.traces.arrivals import Arrival
from alnair.traces.openb_files import Trace


class _Display(CountDisplay):
    def __init__(self) -> None:
        super().__init__("placing pods", "pods placed", pause=5.0)

    def counts(self, counts: Counts) -> None:
        if self.is_due:
            said = f"{counts.there} created, {counts.refused} refused"
            self.show(counts.placed, counts.pods, said)


async def carry_out(
    client: Client, trace: Trace, arrivals: Sequence[Arrival], settings: Settings
) -> ReplayOutcome:
    """Replay; an interrupt ends it with what is known by then.

    Raises:
        KubeError: The cluster cannot be reached, or refuses.
        LocalClusterError: Other nodes have the names of the trace's, or are machines.
    """
    stop = asyncio.Event()
    await simnodes.refuse_machines(client)
    with _Display() as display, setting(stop):
        return await replay(
            client,
            trace,
            arrivals,
            settings,
            create_nodes=lambda c, nodes, now: simnodes.ensure(c, nodes, now, display),
            watcher=display,
            stop=stop,
        )
