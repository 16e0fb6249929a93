"""Follows the configuration file of a running scheduler, and the file of pairs that it names.

A changed file is read and judged whole before anything follows from it. One that is refused
changes nothing: what was in force stays so, and the log, a metric and an event say why.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from alnair.configuration.profile_assembly import Assembly
from alnair.configuration.reloading import taken_over
from alnair.configuration.scheduler_file import (
    Configuration,
    ConfigurationError,
    load,
    pairs_file,
)
from alnair.kube.events import EventKind
from alnair.serving import logs

_log = logging.getLogger(__name__)


class Loaded(msgspec.Struct, frozen=True):
    """A configuration, and what makes its profiles."""

    configuration: Configuration
    assembly: Assembly


class Source(msgspec.Struct, frozen=True):
    """Where a configuration comes from.

    Attributes:
        path: The file; None: there is none, so nothing ever changes.
        read: Reads and checks it, with the options that override it; raises ConfigurationError.
    """

    path: Path | None
    read: Callable[[], Loaded]


class ConfigurationFile:
    """The configuration in force, and how it stands to the file.

    Args:
        source: Where it comes from.
        loaded: What the process has started with.
        tell: Takes the reason, the message and the kind of an event.
        period: Seconds between looks. The kubelet takes up to a minute to write a ConfigMap.

    Attributes:
        in_force: What is in force.
        since: Since when, in seconds since the epoch.
        problem: Why the file is not in force as it is; empty: it is.
        results: How often a changed file was applied, refused, or left something to a restart.
        changed: Set when decisions shall go by something else; who goes by it clears it.
    """

    def __init__(
        self,
        source: Source,
        loaded: Loaded,
        tell: Callable[[str, str, EventKind], None],
        period: float = 2.0,
    ) -> None:
        self._source = source
        self._period = period
        self._tell = tell
        self._before: bytes | None = None
        self._judged: bytes | None = None
        self._read: bytes | None = None
        self._pairs: Path | None = None
        self.in_force = loaded
        self.since = time.time()
        self.problem = ""
        self.results: Counter[str] = Counter()
        self.changed = asyncio.Event()

    async def run(self) -> None:
        """Follow the file until cancelled."""
        path = self._source.path
        if path is None:
            return
        while True:
            found = await asyncio.to_thread(self._content, path)
            # Only what two looks find is complete: an editor writes a file in several steps.
            if found == self._before and found != self._judged:
                self._judged = found
                self._judge()
            self._before = found
            await asyncio.sleep(self._period)

    def _judge(self) -> None:
        """Take over what can be of the file as it is now."""
        running = self.in_force.configuration
        try:
            wanted = self._source.read()
        except ConfigurationError as error:
            self.results["refused"] += 1
            self._complain("ConfigurationRefused", f"the former one stays in force: {error}")
            return
        configuration, left = taken_over(running, wanted.configuration)
        other_pairs = wanted.assembly.pairs != self.in_force.assembly.pairs
        if is_other := configuration != running or other_pairs:
            self.in_force = Loaded(configuration, wanted.assembly)
            self.since = time.time()
            self.results["applied"] += 1
            self._apply(running, other_pairs=other_pairs)
        if left:
            self.results["restart_needed"] += 1
            self._complain(
                "ConfigurationNeedsRestart",
                f"{self._source.path}: restart the scheduler to change {', '.join(left)};"
                " all else is in force",
            )
        elif self.problem or is_other:
            self.problem = ""
            self._tell("ConfigurationReloaded", f"{self._source.path} is in force", "Normal")
            _log.info("%s is in force", self._source.path)

    def _content(self, path: Path) -> bytes:
        """The content of the file, and of the file of pairs that it names."""
        found = _content(path)
        if found != self._read:
            self._read = found
            # A file that is refused still says which other one to follow, if it can be read at all.
            with contextlib.suppress(ConfigurationError):
                self._pairs = pairs_file(load(path), path.parent)
        return found + b"\0" + (_content(self._pairs) if self._pairs else b"")

    def _apply(self, before: Configuration, *, other_pairs: bool) -> None:
        now = self.in_force.configuration
        if now.logging != before.logging:
            logs.set_up(now.logging.format, now.logging.level)
        if other_pairs or msgspec.structs.replace(now, logging=before.logging) != before:
            self.changed.set()

    def _complain(self, reason: str, problem: str) -> None:
        self.problem = problem
        self._tell(reason, problem, "Warning")
        _log.error("%s: %s", reason, problem)


def _content(path: Path) -> bytes:
    """The file's content; empty where it cannot be read, which is refused as any bad file."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
