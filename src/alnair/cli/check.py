"""`alnair check`: proves that nobody was promised what is not there."""

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import FAILED
from alnair.cli.json_output import json_option, write_json
from alnair.cli.option_groups import grouped

if TYPE_CHECKING:
    from alnair.checker.violation import Violation
    from alnair.kube.client import Client


@grouped
def check(
    *,
    cluster: ClusterOptions,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NS",
            help="Report only on pods of this namespace, and on their nodes; repeatable.",
        ),
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            "--scheduler",
            metavar="NAME",
            help="One more schedulerName whose pods count as ours; repeatable.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Judge every instant, not just now.")
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--for", min=0, metavar="SECONDS", help="End --watch by itself after this time."
        ),
    ] = None,
    gang_grace: Annotated[
        float,
        typer.Option(
            "--gang-grace",
            min=0,
            metavar="SECONDS",
            help="With --watch: a gang may be partly bound for so long, for it is many bindings;"
            " raise it where schedulers are killed.",
        ),
    ] = 5.0,
    expect_pods: Annotated[
        int | None,
        typer.Option(
            "--expect-pods",
            min=0,
            metavar="N",
            help="There must be N pods in the end, and none of them lost on the way.",
        ),
    ] = None,
    json: Annotated[bool, json_option("the result")] = False,
) -> None:
    """Prove from the API objects alone that no promise is broken.

    No node and no GPU is over-committed, every pod is where its constraints allow, no gang is
    placed in part, and every GPU pod of ours says which GPU is its own. All is recomputed from
    nodes and pods as they are read back; no code is shared with the scheduler.

    Ends with 0 if all is well, 1 if a promise is broken, 2 on wrong usage, 3 if the cluster cannot
    be read.

    Examples:
      alnair check
      alnair check --namespace openb --expect-pods 2000 --json
      alnair check --watch --for 60
    """
    from alnair.checker.cluster import Finding
    from alnair.checker.objects.api_names import SCHEDULERS
    from alnair.checker.over_time.live_check import Watching
    from alnair.cli.interrupts import until_interrupted
    from alnair.cli.known_namespace import must_exist
    from alnair.live import checking

    if seconds is not None and not watch:
        raise typer.BadParameter("it is the time of --watch: add that", param_hint="--for")

    def tell(violation: "Violation") -> None:
        if not json:
            typer.echo(str(violation))

    ours = SCHEDULERS | frozenset(scheduler or ())
    scope = frozenset(namespace or ())
    watching = Watching(ours, scope, expect_pods, gang_grace)

    def begun() -> None:
        typer.echo("watching: all is read", err=True)

    async def judge(client: "Client") -> Finding:
        if not watch:
            # Of no pods every promise is kept; where some are expected, that is a violation.
            for name in namespace or () if expect_pods is None else ():
                await must_exist(client, name)
            return await checking.check(client, ours, scope, expect_pods)
        await checking.watch(client, watching, until_interrupted(seconds), tell, begun)
        return Finding(*watching.counts(), watching.violations)

    with unreadable(checking.UnreadError):
        result = ask(cluster.connection(), "check", judge)
    if not watch:
        for violation in result.violations:
            tell(violation)
    if json:
        write_json({"ok": not result.violations, **msgspec.structs.asdict(result)})
    else:
        typer.echo(result.summary())
    if result.violations:
        raise typer.Exit(FAILED)
