"""The options of `alnair controller` that are about moving pods, so that others start."""

from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.option_groups import OptionGroup

if TYPE_CHECKING:
    from alnair.model.rebalancing import RebalanceBounds


class RebalancingOptions(OptionGroup, frozen=True, kw_only=True):
    """Whether pods are moved, and how few."""

    every: Annotated[
        str,
        typer.Option(
            "--rebalance-every",
            metavar="SPAN",
            show_default=False,
            help="So often look whether moving a few pods lets others start that have waited as "
            "long, and move them; by default never.",
        ),
    ] = ""
    moves: Annotated[
        int, typer.Option("--rebalance-moves", min=1, metavar="N", help="Pods moved each time.")
    ] = 4
    at_once: Annotated[
        int, typer.Option("--rebalance-at-once", min=1, metavar="N", help="Moves under way.")
    ] = 1
    cool_down: Annotated[
        str,
        typer.Option(
            "--rebalance-cool-down",
            metavar="SPAN",
            help="So long nobody is moved who came to a node, or helped who was.",
        ),
    ] = "1h"
    gain: Annotated[
        float,
        typer.Option(
            "--rebalance-gain",
            min=0.0,
            metavar="X",
            help="GPUs that are put to use for each GPU whose pod is moved, at least.",
        ),
    ] = 2.0
    timeout: Annotated[
        str,
        typer.Option("--rebalance-timeout", metavar="SPAN", help="Give a move up after so long."),
    ] = "5m"

    def bounds(self) -> "RebalanceBounds | None":
        """Return what keeps the moves few; None without --rebalance-every."""
        spans = {
            "--rebalance-every": self.every,
            "--rebalance-cool-down": self.cool_down,
            "--rebalance-timeout": self.timeout,
        }
        from alnair.model import durations
        from alnair.model.rebalancing import RebalanceBounds

        read = {}
        for option, text in spans.items():
            try:
                read[option] = durations.seconds(text) if text else 0.0
            except ValueError as error:
                raise typer.BadParameter(str(error), param_hint=option) from None
        every, cool_down, timeout = read.values()
        if not self.every:
            return None
        for option in ("--rebalance-every", "--rebalance-timeout"):
            if read[option] < 1:
                raise typer.BadParameter("it must be a second or more", param_hint=option)
        if cool_down < every:
            text = "it must not be shorter than --rebalance-every"
            raise typer.BadParameter(text, param_hint="--rebalance-cool-down")
        return RebalanceBounds(
            every=every,
            moves=self.moves,
            at_once=self.at_once,
            cool_down=cool_down,
            gain=self.gain,
            timeout=timeout,
        )
