"""`alnair history schema`: the tables, for those who ask them by SQL."""

from typing import Annotated, Literal

import typer


def schema(
    *,
    dialect: Annotated[
        Literal["sqlite", "postgresql"], typer.Option(help="Of which database.")
    ] = "sqlite",
) -> None:
    """Write the tables of a history as SQL, which any client of the database may then ask.

    Times are seconds since the epoch, durations are in seconds. Read only: the tables are the
    controller's, and migrations change them.

    Examples:
      alnair history schema
      sqlite3 history.db 'SELECT "user", sum(gpu_seconds) / 3600 FROM jobs GROUP BY 1'
    """
    from sqlalchemy import Dialect
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.schema import CreateIndex, CreateTable

    from alnair.history.database.tables import METADATA

    kinds = {"postgresql": postgresql.dialect, "sqlite": sqlite.dialect}
    of: Dialect = kinds[dialect]()
    for table in METADATA.sorted_tables:
        text = str(CreateTable(table).compile(dialect=of)).strip()
        typer.echo("\n".join(line.rstrip() for line in text.splitlines()) + ";")
        for index in sorted(table.indexes, key=lambda one: one.name or ""):
            typer.echo(f"{CreateIndex(index).compile(dialect=of)};")
        typer.echo()
