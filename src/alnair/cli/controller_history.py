"""The options of `alnair controller` that are about the history of jobs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from alnair.processes.controller.history.settings import HistorySettings


class HistoryOptions(OptionGroup, frozen=True, kw_only=True):
    """Where the history is, and what goes into it."""

    history: Annotated[
        str,
        typer.Option(
            "--history",
            metavar="URL",
            envvar="ALNAIR_HISTORY",
            show_default=False,
            help="Keep the history of jobs there: sqlite:///FILE, a file, or postgresql://…",
        ),
    ] = ""
    keep: Annotated[
        str,
        typer.Option(
            "--history-keep", metavar="SPAN", help="Forget jobs so long after their end: 180d, 12h."
        ),
    ] = "180d"
    period: Annotated[
        float,
        typer.Option(
            "--history-period", min=0.1, metavar="S", help="Seconds between visits of an agent."
        ),
    ] = 15.0
    token: Annotated[
        Path | None,
        typer.Option(
            "--agent-token-file",
            metavar="FILE",
            help="Token that agents are shown, for the audience alnair.",
        ),
    ] = None
    outboxes: Annotated[
        list[str] | None,
        typer.Option(
            "--outbox", metavar="URL", help="An agent that is no pod, to be visited; repeatable."
        ),
    ] = None
    annotate: Annotated[
        float,
        typer.Option(
            "--annotate-owners",
            min=0,
            metavar="S",
            help="Seconds between two annotations of one owner with what its pods used; 0: none.",
        ),
    ] = 60.0

    def settings(self) -> "HistorySettings | None":
        """Return what the process is told; None without --history."""
        from alnair.model import durations

        try:
            keep = durations.seconds(self.keep)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--history-keep") from None
        if not self.history:
            return None
        from alnair.history.database.addresses import HistoryError
        from alnair.history.database.opening import address
        from alnair.processes.controller.history.settings import HistorySettings

        try:
            address(self.history)
        except HistoryError as error:
            raise typer.BadParameter(str(error), param_hint="--history") from None
        return HistorySettings(
            url=self.history,
            keep=keep,
            period=self.period,
            token=self.token,
            outboxes=tuple(url.rstrip("/") for url in self.outboxes or ()),
            annotate=self.annotate,
        )
