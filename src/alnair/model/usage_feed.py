"""What an agent answers about the pods of its node; its pages `/v1/usage` and `/v1/series`."""

from typing import Annotated, Final

import msgspec

from alnair.model.usage import PodUsage

#: Ended pods in one answer, at most.
MOST_ENDED: Final = 500


class EndedPod(msgspec.Struct, frozen=True):
    """A pod that has ended; `seq` grows by 1 from each to the next."""

    seq: int
    usage: PodUsage


class UsagePage(msgspec.Struct, frozen=True):
    """`GET /v1/usage?after=SEQ`.

    Who has kept all of it says `DELETE /v1/usage?upto=SEQ&stream=STREAM`, with the largest `seq`.

    Attributes:
        v: 1.
        stream: Changes when the agent's folder was lost, and with it the count: begin at 0 then.
        last: The largest number that was given so far; 0: none.
        ended: After the one asked for, the oldest first; at most `MOST_ENDED`.
        more: Whether there are more of them: ask again, after the last of these.
        dropped: Ended pods that were thrown away before anybody said that they are kept.
        running: The pods that run now, until now.
    """

    v: Annotated[int, msgspec.Meta(ge=1)]
    stream: str
    last: int
    ended: list[EndedPod] = []
    more: bool = False
    dropped: int = 0
    running: list[PodUsage] = []


class PodSeries(msgspec.Struct, frozen=True):
    """`GET /v1/series?pod=UID`: a pod's last ten minutes, a sample a second.

    Attributes:
        v: 1.
        pod: Uid.
        times: Seconds since the epoch.
        metrics: Name, as in `PodUsage` → values at these times; None: not measured.
    """

    v: Annotated[int, msgspec.Meta(ge=1)]
    pod: str
    times: list[float]
    metrics: dict[str, list[float | None]]
