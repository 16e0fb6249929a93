"""Inserts that may say what happens to a row that is there, of either database."""

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

#: Both have the same methods.
Insert = postgresql.Insert | sqlite.Insert


def insert(connection: Connection, table: Table) -> Insert:
    """Return the insert of the connection's database."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)
