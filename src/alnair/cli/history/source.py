"""Where a history is read: in a database, or at the controller of a cluster."""

from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.cluster_selection import ClusterOptions, ask, unreadable
from alnair.cli.failures import USAGE, expected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from alnair.history.database.efficiency import Efficiency
    from alnair.history.database.queries import Details, Job

HistoryUrl = Annotated[
    str,
    typer.Option(
        "--history",
        metavar="URL",
        envvar="ALNAIR_HISTORY",
        show_default=False,
        help="The database: a file, or postgresql://…; without it the cluster's controller is"
        " asked.",
    ),
]


def jobs(url: str, cluster: ClusterOptions, query: "Mapping[str, str]") -> "list[Job]":
    """Return the jobs that a query wants, the newest first; ends with 2 or 3 where it cannot."""
    import time

    import msgspec

    from alnair.history.database import opening, queries
    from alnair.history.database.addresses import HistoryError
    from alnair.history.database.filters import QueryError, filter_of
    from alnair.live import history_source
    from alnair.live.leader import AskError

    class Answer(msgspec.Struct):
        jobs: list[queries.Job]

    with unreadable(AskError, HistoryError, before=""), expected(QueryError, code=USAGE):
        wanted = filter_of(query, time.time())
        if url:
            with opening.readable(url) as connection:
                return queries.jobs(connection, wanted)
        connection_of = cluster.connection()
        return ask(connection_of, "history", lambda c: history_source.jobs(c, query, Answer)).jobs


def efficiency(url: str, cluster: ClusterOptions, query: "Mapping[str, str]") -> "Efficiency":
    """Return what GPUs were held for and used; ends with 2 or 3 where it cannot."""
    import time

    from alnair.history.database import efficiency as figures
    from alnair.history.database import opening
    from alnair.history.database.addresses import HistoryError
    from alnair.history.database.filters import QueryError, efficiency_of
    from alnair.live import history_source
    from alnair.live.leader import AskError

    with unreadable(AskError, HistoryError, before=""), expected(QueryError, code=USAGE):
        wanted = efficiency_of(query, time.time())
        if url:
            with opening.readable(url) as connection:
                return figures.efficiency(connection, wanted)
        asked = cluster.connection()
        kind = figures.Efficiency
        return ask(asked, "report", lambda c: history_source.efficiency(c, query, kind))


def job(url: str, cluster: ClusterOptions, parts: tuple[str, str, str]) -> "Details | None":
    """Return all that is known of a job; None if the database has none of that name."""
    from alnair.history.database import opening, queries
    from alnair.history.database.addresses import HistoryError
    from alnair.history.database.queries import Details
    from alnair.live import history_source
    from alnair.live.leader import AskError

    with unreadable(AskError, HistoryError, before=""):
        if url:
            with opening.readable(url) as connection:
                return queries.find(connection, *parts)
        asked = cluster.connection()
        return ask(asked, "history", lambda c: history_source.job(c, parts, Details))
