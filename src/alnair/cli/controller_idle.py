"""The options of `alnair controller` that are about pods that do not use their GPUs."""

from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from alnair.processes.controller.idle_evictions import IdleSettings


class IdleOptions(OptionGroup, frozen=True, kw_only=True):
    """Who must go, and when."""

    after: Annotated[
        str,
        typer.Option(
            "--evict-idle",
            metavar="SPAN",
            show_default=False,
            help="Evict pods that ask for it, or whose namespace does, and have not used their "
            "GPUs for so long; by default nobody.",
        ),
    ] = ""
    grace: Annotated[
        str,
        typer.Option(
            "--evict-idle-grace", metavar="SPAN", help="From the event that tells, to the eviction."
        ),
    ] = "10m"

    def settings(self) -> "IdleSettings | None":
        """Return what the process is told; None without --evict-idle."""
        from alnair.model import durations

        spans = {}
        for option, text in (("--evict-idle", self.after), ("--evict-idle-grace", self.grace)):
            try:
                spans[option] = durations.seconds(text) if text else None
            except ValueError as error:
                raise typer.BadParameter(str(error), param_hint=option) from None
        after, grace = spans.values()
        if after is None:
            return None
        from alnair.processes.controller.idle_evictions import IdleSettings

        return IdleSettings(after, grace or 0.0)
