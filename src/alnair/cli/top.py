"""`alnair top`: what nodes, GPUs, pods and their owners do now."""

import enum
import sys
from typing import Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped


class View(enum.StrEnum):
    """What is shown."""

    NODES = "nodes"
    GPUS = "gpus"
    PODS = "pods"
    OWNERS = "owners"
    WORK = "work"


@grouped
def top(
    *,
    view: Annotated[
        View,
        typer.Argument(metavar="VIEW", help="Shown first: nodes, gpus, pods, owners or work."),
    ] = View.PODS,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", metavar="NS", help="Only pods of this one."),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", min=0.5, max=3600, metavar="S", help="Between looks.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show one look and end.")] = False,
    cluster: ClusterOptions,
    json: Annotated[bool, json_option("one look")] = False,
) -> None:
    """Show who holds GPUs and what they do: nodes, GPUs, pods, the pods' owners, or their work.

    On a terminal it goes on until q is pressed; n, g, p, o, w show the other views, s sorts by the
    next column, r turns the order round. Agents are asked for the last second of pods; where that
    is not allowed or there are more than 64 of them, the annotations that they write are shown.
    Nodes and GPUs are always shown as annotated: a mean over half a minute, up to a minute old.

    Examples:
      alnair top
      alnair top gpus --once
      alnair top work --once
      alnair top pods -n team-a --json | jq '.pods[] | select(.idle_s > 600)'
    """
    from alnair.cli.known_namespace import must_exist
    from alnair.live.usage.look import Looker

    with unreadable():
        found = cluster.connection()
        if namespace is not None:
            ask(found, "top", lambda client: must_exist(client, namespace))
        if json or once or not sys.stdout.isatty():
            use = ask(found, "top", lambda client: Looker(client, namespace).look())
            if json:
                write_json(use)
            else:
                from alnair.cli.text.console import console
                from alnair.cli.text.use_tables import show

                show(use, view, console(wide=True))
            return
        from alnair.cli.text.top_screen import Screen

        screen = Screen(view, interval)
        ask(
            found,
            "top",
            lambda client: screen.run(Looker(client, namespace).look),
            says_if_slow=False,
        )
