"""Whether limits were lifted: by what programs in containers were given, and what pages say."""

import msgspec

from alnair.kube.client import Client
from alnair.local.controlplane import LocalCluster
from kit.live.real_pods import reports, shares
from kit.real_node.trying_tenants import lines, pages
from kit.upgrades.load import BUSY, BUSY_SLICE, TENANTS

#: Seconds over which a share is looked at, and the most that it may be: the fake GPU's clock slips
#: with the machine's, and without its limit the program would have nearly all.
SPAN, MOST = 5.0, 0.5
#: What it had once, at least, if it was looked at: on a busy machine it has less at times.
SEEN = 0.1


class Limits(msgspec.Struct):
    """What was seen of them.

    Attributes:
        refusals: How often programs were refused what is beyond their slice.
        share: Least and most of a GPU's time that the busy program had over `SPAN` seconds.
        faults: What is wrong.
    """

    refusals: int = 0
    share: tuple[float, float] = (1.0, 0.0)
    faults: list[str] = []


def of_pages(cluster: LocalCluster) -> set[str]:
    """Return which of the tenants' limits no page on the node has now."""
    found = [page[:2] for page in pages(cluster).values()]
    wanted = {**TENANTS, BUSY: BUSY_SLICE}
    # A page without a share asked for has what others leave.
    return {
        name
        for name, (mib, percent) in wanted.items()
        if not any(mib == page[0] and percent in (0, page[1]) for page in found)
    }


async def of_programs(client: Client) -> Limits:
    """Judge all that the programs said from their start on."""
    found = Limits(faults=[])
    for name, (mib, _) in TENANTS.items():
        said = await lines(client, name)
        found.refusals += len(said)
        if wrong := set(said) - {str(mib)}:
            found.faults.append(f"{name} has {mib} MiB, and says {sorted(wrong)}")
    text = "\n".join(await lines(client, BUSY))
    first, last = (reports(text)[index]["time"] for index in (1, -1))
    least, most = found.share
    after = first
    while after + SPAN <= last:
        part = [line for line in text.splitlines() if _within(line, after, after + SPAN)]
        seconds, parts = shares(["\n".join(part)])
        if seconds > SPAN / 2:
            least, most = min(least, parts[0]), max(most, parts[0])
        after += SPAN
    found.share = round(least, 3), round(most, 3)
    if not SEEN < most < MOST:
        found.faults.append(f"{BUSY} has {BUSY_SLICE[1]} %, and had {found.share}")
    return found


def _within(line: str, begin: float, end: float) -> bool:
    found = reports(line)
    return bool(found) and begin <= found[0]["time"] <= end
