"""Forgets what is too old: jobs that ended before a time, and what belongs to them."""

from typing import Final

from sqlalchemy import Connection, delete, select

from alnair.history.database import daily, facts, writing
from alnair.history.database.tables import JOBS, NODES, POSITIONS

#: Jobs in one transaction: nobody else waits long.
_AT_ONCE: Final = 500


def remove(connection: Connection, before: float) -> int:
    """Remove some of the jobs that ended before a time, seconds since the epoch; returns how many.

    Their pods and findings go with them. Call it again until it returns 0.
    """
    writing.one_at_a_time(connection)
    old = select(JOBS.c.uid).where(JOBS.c.completed < before).limit(_AT_ONCE)
    uids = list(connection.scalars(old))
    if uids:
        days = daily.keys(connection, uids)
        connection.execute(delete(JOBS).where(JOBS.c.uid.in_(uids)))
        daily.refresh(connection, days)
        return len(uids)
    facts.forget_decided(connection, before)
    connection.execute(delete(POSITIONS).where(POSITIONS.c.changed < before))
    for name, up in list(connection.execute(select(NODES.c.name, NODES.c.up))):
        kept = [pair for pair in up or [] if pair[1] is None or pair[1] >= before]
        if kept == (up or []):
            continue
        this = NODES.c.name == name
        if kept:
            connection.execute(NODES.update().where(this).values(up=kept))
        else:
            connection.execute(delete(NODES).where(this))
    return 0
