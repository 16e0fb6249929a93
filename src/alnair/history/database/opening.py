"""Opens a history, and first brings its tables to what this version knows.

Several may open one history at once: a lock of the database lets them migrate one after the other,
and the second finds nothing to do.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from alnair.history.database.addresses import SCHEMES, HistoryError

#: The last of the migrations, to which the tables of this version belong.
REVISION: Final = "0003"
#: Of PostgreSQL's advisory lock; any number that others do not use.
_LOCK: Final = 0x616C6E6169720001
#: Seconds for which a writer waits for another one.
_PATIENCE: Final = 30.0
#: Writers for whom it waits, one after the other, before it gives up.
_TRIES: Final = 50
#: What to do about what SQLite says.
_ADVICE: Final = {
    sqlite3.SQLITE_FULL: ": make room on its disk, or keep jobs for a shorter time",
    sqlite3.SQLITE_CORRUPT: ": put the file aside, and save what can be with"
    " 'sqlite3 FILE .recover', or take a backup",
    sqlite3.SQLITE_NOTADB: ": name another file",
    sqlite3.SQLITE_READONLY: ": give its user the right to write the file and its folder",
    sqlite3.SQLITE_BUSY: ": another process has written it for long",
}
_HOW: Final = "write sqlite:///FILE, postgresql://USER:PASSWORD@HOST/DATABASE, or a file's path"


def address(name: str) -> URL:
    """Return the URL that a user means by a URL or a path.

    Raises:
        HistoryError: It is of no database that can be used.
    """
    if "://" not in name and not name.startswith("sqlite:"):
        return URL.create("sqlite", database=str(Path(name).absolute()))
    try:
        url = make_url(name)
    except (ArgumentError, ValueError) as error:
        raise HistoryError(f"this is no URL of a history: {_HOW}") from error
    kind = url.get_backend_name()
    if kind not in SCHEMES:
        raise HistoryError(f"{kind} cannot keep a history: {_HOW}")
    if kind == "sqlite":
        if not url.database or url.database == ":memory:":
            raise HistoryError(f"{shown(url)} names no file: {_HOW}")
        return url.set(drivername="sqlite", database=str(Path(url.database).absolute()))
    return url.set(drivername="postgresql+psycopg")


def shown(url: URL) -> str:
    """Return a URL for people: without a password."""
    return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)


def open_history(name: str, *, writes: bool = False) -> Engine:
    """Return the engine of a history whose tables are as this version wants them.

    Args:
        name: URL or path.
        writes: Make it where there is none, and migrate it. Who only reads refuses another version.

    Raises:
        HistoryError: It cannot be opened, or is of another version.
    """
    url = address(name)
    path = Path(url.database or "")
    if url.get_backend_name() == "sqlite" and not writes and not path.exists():
        raise HistoryError(f"{path}: there is no such history: check the path")
    engine = None
    try:
        engine = _engine(url, writes=writes)
        if writes:
            _migrate(engine, url)
        else:
            _check(engine, url)
        found, engine = engine, None
    except (NoSuchModuleError, SQLAlchemyError, OSError) as error:
        raise HistoryError(f"{shown(url)}: it cannot be opened: {reason(error)}") from error
    finally:
        if engine is not None:
            engine.dispose()
    return found


def reason(error: Exception) -> str:
    """Return what a database says, without the statement, and what to do where that is known."""
    origin = error.orig if isinstance(error, DBAPIError) and error.orig else error
    said = " ".join(str(origin).split()) or type(error).__name__
    if isinstance(origin, sqlite3.Error):
        code = getattr(origin, "sqlite_errorcode", 0) & 0xFF
        return said + _ADVICE.get(code, "")
    return said


@contextlib.contextmanager
def readable(name: str) -> Iterator[Connection]:
    """Open a history to read it, at one moment.

    Raises:
        HistoryError: It cannot be read.
    """
    engine = open_history(name)
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise HistoryError(f"{shown(engine.url)}: it cannot be read: {reason(error)}") from error
    finally:
        engine.dispose()


def _engine(url: URL, *, writes: bool) -> Engine:
    options: dict[str, Any] = {
        "json_serializer": lambda value: msgspec.json.encode(value).decode(),
        "json_deserializer": msgspec.json.decode,
    }
    if url.get_backend_name() == "postgresql":
        return create_engine(
            url,
            pool_size=2,
            max_overflow=2,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED" if writes else "REPEATABLE READ",
            connect_args={"connect_timeout": 10},
            **options,
        )
    if writes:
        Path(url.database or "").parent.mkdir(parents=True, exist_ok=True)
    connect = {"timeout": _PATIENCE, "check_same_thread": False}
    engine = create_engine(url, poolclass=NullPool, connect_args=connect, **options)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        # Transactions begin where we say: Python's own habit leaves some statements outside.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys=ON")
        if writes:
            _log_ahead(connection)
            # The outbox forgets what was committed: a commit must outlive the machine.
            connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Let who reads not wait for who writes; SQLite does not wait by itself for this one lock."""
    for _ in range(_TRIES):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            connection.execute("BEGIN IMMEDIATE")  # here it does, until the other one is done
            connection.execute("COMMIT")
        else:
            return
    raise sqlite3.OperationalError("database is locked")


def _migrate(engine: Engine, url: URL) -> None:
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        # SQLite: the transaction itself is the lock.
        if _revision(connection) != REVISION:
            from alnair.history.database import migrating

            migrating.upgrade(connection, shown(url))


def _revision(connection: Connection) -> str | None:
    """Return the last migration of a history; None of what is none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def _check(engine: Engine, url: URL) -> None:
    """Refuse what is no history, or of another version."""
    with engine.connect() as connection:
        there = _revision(connection)
    if there is None:
        raise HistoryError(f"{shown(url)}: this is no history of Alnair: check the address")
    if there != REVISION:
        raise HistoryError(
            f"{shown(url)}: its tables are of version {there}, and this Alnair reads {REVISION}:"
            " use the version of its controller"
        )
