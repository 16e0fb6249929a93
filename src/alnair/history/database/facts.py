"""What is true of the whole: which cluster it is, when it was looked at, what its scheduler did."""

from typing import Final

from sqlalchemy import Connection, delete, select

from alnair.history.database.addresses import HistoryError
from alnair.history.database.inserts import insert
from alnair.history.database.tables import DECISIONS, FACTS

_LOOKED: Final = "looked"
_CLUSTER: Final = "cluster"
_DECIDED: Final = "decided"
_MINUTE: Final = 60.0


def looked(connection: Connection) -> float | None:
    """Return when the cluster was looked at last, seconds since the epoch."""
    return connection.scalar(select(FACTS.c.value).where(FACTS.c.name == _LOOKED))


def put_looked(connection: Connection, when: float) -> None:
    """Note that the cluster is looked at now. A clock that was set back makes it no earlier."""
    before = looked(connection)
    _put(connection, _LOOKED, when if before is None else max(before, when))


def claim(connection: Connection, cluster: str) -> None:
    """Note whose history this is: what is not seen in one cluster would be taken as gone.

    Args:
        connection: In a transaction.
        cluster: The uid of its namespace kube-system.

    Raises:
        HistoryError: It is of another cluster.
    """
    before = connection.scalar(select(FACTS.c.text).where(FACTS.c.name == _CLUSTER))
    if before is None:
        _put(connection, _CLUSTER, 0.0, cluster)
    elif before != cluster:
        raise HistoryError(
            f"this is the history of another cluster (its kube-system has uid {before}, and this"
            f" one's {cluster}): name another database"
        )


def put_decided(connection: Connection, count: int, seconds: float, now: float) -> None:
    """Note the decisions since the scheduler's start, and their seconds: what is new is added.

    The same figures again add nothing; smaller ones are of a scheduler that has begun anew.
    """
    before = connection.execute(
        select(FACTS.c.value, FACTS.c.text).where(FACTS.c.name == _DECIDED)
    ).first()
    _put(connection, _DECIDED, float(count), repr(seconds))
    if before is None:
        return
    if before[0] <= count:
        count, seconds = count - int(before[0]), max(seconds - float(before[1]), 0.0)
    if not count:
        return
    minute = int(now // _MINUTE)
    statement = insert(connection, DECISIONS).values(minute=minute, count=count, seconds=seconds)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["minute"],
            set_={
                "count": DECISIONS.c.count + statement.excluded.count,
                "seconds": DECISIONS.c.seconds + statement.excluded.seconds,
            },
        )
    )


def decided(connection: Connection) -> list[tuple[float, int, float]]:
    """Return when, decisions and their seconds since the first look: before and after each minute.

    Both are told of the minute's end, so that of a part of the history whole minutes count.
    """
    found: list[tuple[float, int, float]] = []
    count, seconds = 0, 0.0
    rows = select(DECISIONS.c.minute, DECISIONS.c.count, DECISIONS.c.seconds)
    for minute, more, longer in connection.execute(rows.order_by(DECISIONS.c.minute)):
        end = (minute + 1) * _MINUTE
        found.append((end, count, seconds))
        count, seconds = count + more, seconds + longer
        found.append((end, count, seconds))
    return found


def forget_decided(connection: Connection, before: float) -> None:
    """Forget decisions before a time."""
    connection.execute(delete(DECISIONS).where(DECISIONS.c.minute < int(before // _MINUTE)))


def _put(connection: Connection, name: str, value: float, text: str = "") -> None:
    statement = insert(connection, FACTS).values(name=name, value=value, text=text)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["name"], set_={"value": value, "text": text}
        )
    )
