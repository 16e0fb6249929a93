"""What the controller can be told of the history."""

from pathlib import Path
from typing import Final

import msgspec

_DAY: Final = 86400.0
#: Seconds for which jobs are kept after their end.
KEEP: Final = 180 * _DAY
#: Seconds between visits of an agent, and between two annotations of one owner.
PERIOD: Final = 15.0
ANNOTATE: Final = 60.0


class HistorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the history is, and what is written into it.

    Attributes:
        url: Of the database, or the path of a SQLite file.
        keep: Seconds for which jobs are kept after their end.
        period: Seconds between visits of an agent.
        token: File with a token for agents, for the audience of our pages.
        outboxes: URLs of agents that are no pods.
        annotate: Seconds between two annotations of one owner; 0: owners are not annotated.
    """

    url: str
    keep: float = KEEP
    period: float = PERIOD
    token: Path | None = None
    outboxes: tuple[str, ...] = ()
    annotate: float = ANNOTATE
