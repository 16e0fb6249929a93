"""What the leader's plugins have learned, as an annotation of its lease: for the next leader.

It is compressed, and made anew only now and then, since the lease is written with each renewal.
"""

import base64
import logging
import math
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from alnair.kube.lease import RELEASE_PATIENCE
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework import observers
from alnair.scheduler.framework.extension_points import Profile

#: Seconds between two looks at what was learned.
EVERY: Final = 60.0
#: Characters at most: as much as is written with each renewal. About 150 kinds of pods take 2,300.
MOST: Final = 32_768
#: Bytes that are unpacked at most.
_MOST_UNPACKED: Final = 4 * 2**20
_log = logging.getLogger(__name__)


class PublishedLearning:
    """The annotation's text; empty while what a leader before has said is still to be kept."""

    def __init__(self) -> None:
        self._text = ""
        self._due = -math.inf
        self._ended = -math.inf
        self._told = False

    def end(self, engine: Engine, now: float) -> None:
        """End a term: what was learned is said once more, when the lease is given back."""
        self._text = self._of(engine) or self._text
        self._due = -math.inf
        self._ended = now

    def text(self, engine: Engine | None, now: float) -> str:
        """Return what the annotation says now.

        Args:
            engine: None while this process does not lead, or the engine does not know all yet.
            now: seconds from anywhere.
        """
        if engine is None:
            if now - self._ended > RELEASE_PATIENCE:
                self._text = ""  # another may lead meanwhile, and know better
            return self._text
        if now >= self._due and (text := self._of(engine)):
            self._text = text
            self._due = now + EVERY
        return self._text

    def _of(self, engine: Engine) -> str:
        try:
            states = engine.view.plugin_states()
            text = _packed(states) if states else ""
        except Exception:  # noqa: BLE001 (logged)
            # A fault here must not cost the lease; what was learned before is as good.
            _log.exception("what was learned cannot be saved with the lease")
            return self._text
        if len(text) <= MOST:
            return text
        if not self._told:
            self._told = True
            _log.warning(
                "what was learned is too much for the lease (%d characters, at most %d): "
                "the next leader goes by what was saved before, or by the pods there are",
                len(text),
                MOST,
            )
        return self._text


def read(text: str, profiles: Iterable[Profile]) -> Mapping[str, Any]:
    """Return what a leader before has learned, by plugin; nothing, and a warning, if it is none."""
    if not text:
        return {}
    try:
        packed = zlib.decompressobj()
        data = packed.decompress(base64.b64decode(text, validate=True), _MOST_UNPACKED)
        states = msgspec.json.decode(data, type=dict[str, Any])
        observers.check(profiles, states)
    except (ValueError, zlib.error) as error:  # those of msgspec and StateError are ValueErrors
        _log.warning("what the last leader learned cannot be read, and is left: %s", error)
        return {}
    return states


def _packed(states: Mapping[str, Any]) -> str:
    return base64.b64encode(zlib.compress(msgspec.json.encode(states), 9)).decode()
