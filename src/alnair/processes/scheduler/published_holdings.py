"""What the leader holds for others, as an annotation of its lease: written with each renewal."""

import logging
import time

import msgspec

from alnair.kube.objects.annotations import rfc3339
from alnair.model.api_types import Holdings
from alnair.scheduler.advice.holdings import holdings
from alnair.scheduler.engine.engine import Engine

_log = logging.getLogger(__name__)
_NOTHING = Holdings(1)


class PublishedHoldings:
    """The annotation's text; it stays the same, with its time, while the same is held."""

    def __init__(self) -> None:
        self._last = _NOTHING
        self._text = ""

    def text(self, engine: Engine | None) -> str:
        """Return what the annotation says now; without an engine, that nothing is held."""
        try:
            held = holdings(engine.view) if engine is not None else _NOTHING
        except Exception:  # noqa: BLE001 (logged)
            # A fault here must not cost the lease; what was said last is as good as can be had.
            _log.exception("what is held for others cannot be told")
            return self._text
        if held != self._last or not self._text:
            self._last = held
            now = msgspec.structs.replace(held, t=rfc3339(time.time()))
            self._text = msgspec.json.encode(now).decode()
        return self._text
