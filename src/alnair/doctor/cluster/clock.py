"""Do clocks agree: ours with the API server's, and those that wrote leases with it, too?"""

import datetime as dt
import time
from typing import Final

from alnair.doctor.cluster.look import ClusterLook
from alnair.doctor.finding import Finding, error, ok, warning
from alnair.kube.timestamps import timestamp
from alnair.model.names import NAMESPACE

#: Seconds: `Date` has whole ones. Beyond the second, tokens and leases are misjudged.
_NOTICED: Final = 2.0
_TOO_FAR: Final = 30.0
_FIX: Final = "timedatectl set-ntp true"


async def clock(look: ClusterLook) -> list[Finding]:
    """This clock, and those of whoever renewed a lease, agree with the API server's."""
    sent = time.time()
    header = await look.client.transport.date()
    answered = time.time()
    # The server wrote it some time between, and cut off the part of a second.
    between = (answered - sent) / 2
    ahead = (sent + answered) / 2 - (header.timestamp() + 0.5)
    found = [_judged("this machine", "", ahead, _NOTICED + between)]
    server = dt.datetime.fromtimestamp(answered - ahead, dt.UTC).timestamp()
    for name, lease in sorted((await look.leases()).items()):
        renewed = timestamp(lease.get("spec", {}).get("renewTime") or "")
        # A lease tells only of clocks that are ahead: one that is behind looks like a late renewal.
        if renewed - server > _NOTICED:
            holder = lease["spec"].get("holderIdentity") or name
            where = f"lease/{name} in {NAMESPACE}"
            found.append(_judged(f"the machine of {holder}", where, renewed - server, _NOTICED))
    return found


def _judged(whose: str, where: str, ahead: float, most: float) -> Finding:
    if abs(ahead) <= most:
        return ok(f"the clock of {whose} agrees with the API server's", where)
    text = (
        f"the clock of {whose} is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the"
        " API server's: times of leases, tokens and checkpoints are misjudged"
    )
    said = error if abs(ahead) >= _TOO_FAR else warning
    return said(text, where, fix=_FIX)
