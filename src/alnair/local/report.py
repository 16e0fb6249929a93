"""How the work on a cluster is told to whoever watches: steps and progress, never prints."""

from typing import Protocol


class ProgressReport(Protocol):
    """Receives what is going on; the CLI shows it, tests and benchmarks ignore it."""

    def step(self, text: str) -> None:
        """A step begins that may take a while."""

    def progress(self, what: str, done: int, total: int) -> None:
        """`done` of `total` parts of `what` are finished; called again and again until equal."""


class NoReport:
    """A report that nobody reads."""

    def step(self, text: str) -> None:
        """Ignored."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Ignored."""


NO_REPORT = NoReport()
