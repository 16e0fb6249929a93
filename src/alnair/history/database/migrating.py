"""Brings the tables of a history to what this version knows, by alembic.

Apart from `opening`, for alembic takes 0.2 s to load, and nearly nobody has anything to migrate.
"""

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from alnair.history.database.addresses import HistoryError

MIGRATIONS: Final = Path(__file__).parent / "migrations"


def configuration(connection: Connection | None = None) -> Config:
    """Return what tells alembic where the migrations are, and on which connection they run."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, shown: str) -> None:
    """Run the migrations that a history lacks, in the transaction of a connection.

    Args:
        connection: To its database, which nobody else migrates meanwhile.
        shown: Its address for people.

    Raises:
        HistoryError: A newer version has written it.
    """
    try:
        command.upgrade(configuration(connection), "head")
    except CommandError as error:
        raise HistoryError(
            f"{shown}: a newer Alnair has written it: use that one ({error})"
        ) from error
