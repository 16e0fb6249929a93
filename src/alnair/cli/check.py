"""`alnair check`: proves that nobody was promised what is not there."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.connect import ContextOption, KubeconfigOption, NameOption, first

if TYPE_CHECKING:
    from alnair.checker.cluster import Finding
    from alnair.checker.violation import Violation
    from alnair.checker.watching import Watching
    from alnair.kube.connection import Connection

#: Exit codes: a promise is broken; the cluster cannot be read.
BROKEN = 1
UNREADABLE = 3


def check(
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    name: NameOption = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
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
    json: Annotated[
        bool, typer.Option("--json", help="Write the result as one line of JSON.")
    ] = False,
) -> None:
    """Prove from the API objects alone that no promise is broken.

    No node and no GPU is over-committed, every pod is where its constraints allow, no gang is
    placed in part, and every GPU pod of ours says which GPU is its own. All is recomputed from
    nodes and pods as they are read back; no code is shared with the scheduler.

    Ends with 0 if all is well, 1 if a promise is broken, 2 on wrong usage, 3 if the cluster cannot
    be read.

    For example:
      alnair check
      alnair check --namespace openb --expect-pods 2000 --json
      alnair check --watch --for 60
    """
    from alnair.checker.contract import SCHEDULERS
    from alnair.checker.watching import Watching
    from alnair.cli.connect import connection
    from alnair.kube.errors import KubeError
    from alnair.live.checking import UnreadError
    from alnair.local.errors import LocalClusterError

    if seconds is not None and not watch:
        raise typer.BadParameter("it is the time of --watch: add that", param_hint="--for")

    def tell(violation: "Violation") -> None:
        if not json:
            typer.echo(str(violation))

    ours = SCHEDULERS | frozenset(scheduler or ())
    scope = frozenset(namespace or ())
    watching = Watching(ours, scope, expect_pods, gang_grace)
    try:
        found = connection(kubeconfig, context, name)
        if watch:
            result = asyncio.run(_watch(found, watching, seconds, tell))
        else:
            result = asyncio.run(_look(found, ours, scope, expect_pods))
            for violation in result.violations:
                tell(violation)
    except* (KubeError, LocalClusterError, OSError, UnreadError) as group:
        typer.echo(f"alnair: the cluster cannot be read: {first(group)}", err=True)
        raise typer.Exit(UNREADABLE) from None
    if json:
        typer.echo(_json(result))
    else:
        typer.echo(result.summary())
    if result.violations:
        raise typer.Exit(BROKEN)


async def _look(
    connection: "Connection", ours: frozenset[str], scope: frozenset[str], expected: int | None
) -> "Finding":
    from alnair.kube.client import Client
    from alnair.live import checking

    async with Client(connection, user_agent="alnair-check") as client:
        return await checking.check(client, ours, scope, expected)


async def _watch(
    connection: "Connection",
    watching: "Watching",
    seconds: float | None,
    tell: "Callable[[Violation], None]",
) -> "Finding":
    from alnair.checker.cluster import Finding
    from alnair.kube.client import Client
    from alnair.live import checking

    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)

    async def stop() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), seconds)

    async with Client(connection, user_agent="alnair-check") as client:
        await checking.watch(client, watching, stop, tell)
    return Finding(*watching.counts(), watching.violations)


def _json(result: "Finding") -> str:
    import msgspec

    found = {"ok": not result.violations, **msgspec.structs.asdict(result)}
    return msgspec.json.encode(found).decode()
