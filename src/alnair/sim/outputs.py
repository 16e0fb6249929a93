"""Where the results of a simulation go: checkpoint, history, report."""

from pathlib import Path

import msgspec

from alnair.history import history_file, report
from alnair.history.history import History


class OutputError(Exception):
    """Something cannot be written where it shall be; the message says what to do."""


class Outputs(msgspec.Struct, frozen=True, kw_only=True):
    """Where the results go, None = nowhere; the checkpoint at most every so many seconds."""

    checkpoint: Path | None = None
    every: float = 60.0
    report: Path | None = None
    history: Path | None = None

    def check(self) -> None:
        """Refuse places that will not do, before hours are spent.

        Raises:
            OutputError: One of them will not.
        """
        for option, path in (("--checkpoint", self.checkpoint), ("--history", self.history)):
            if path is not None and path.is_dir():
                raise OutputError(f"{option} {path}: this is a folder: name a file")
            # What is written takes the place of what is there, which must not be /dev/null.
            if path is not None and path.exists() and not path.is_file():
                raise OutputError(f"{option} {path}: this is a device or a pipe: name a file")
            if path is not None and not path.parent.is_dir():
                raise OutputError(f"{option} {path}: there is no folder {path.parent}: make it")
        if self.report is not None:
            try:
                report.check(self.report)
            except report.NotReportError as error:
                raise OutputError(f"--report {error}") from error

    def write(self, history: History) -> None:
        """Write the history, and the report on it.

        Raises:
            OSError: One of them cannot be written.
        """
        if self.history is not None:
            history_file.save(history, self.history)
        if self.report is not None:
            report.write({history.source or "simulation": history}, self.report)
