"""The history as the controller uses it: one transaction at a time, in a thread of its own."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from alnair.history.database import opening, retention, writing
from alnair.history.database.addresses import HistoryError
from alnair.history.database.rows import Changes
from alnair.kube.backoff import Backoff

T = TypeVar("T")
_log = logging.getLogger(__name__)

#: Seconds between looks for what is too old to be kept.
_CLEAN: Final = 600.0


class _LeaseLostError(Exception):
    """What was to be committed is another process's to write by now."""


class Store:
    """A history that is opened when it can be, and again when it was away.

    Args:
        name: URL or path.
        leads: Whether we may write at this very moment; any thread may ask.
    """

    def __init__(self, name: str, leads: Callable[[], bool] = lambda: True) -> None:
        self._name = name
        self._leads = leads
        self._engine: Engine | None = None
        self._reader: Engine | None = None
        self._turn = asyncio.Lock()

    async def open_patiently(self) -> None:
        """Open and migrate it now or, where it cannot be reached yet, at the first use.

        Raises:
            HistoryError: It is of no database that can be used.
        """
        shown = opening.shown(opening.address(self._name))
        try:
            await asyncio.to_thread(self._open)
        except HistoryError as error:
            _log.warning("the history: %s", error)
        else:
            _log.info("the history is %s", shown)

    async def write(self, changes: Changes, clock: Callable[[], float] = time.time) -> set[str]:
        """Write changes in one transaction, however long that takes; see `writing.write`.

        They are stamped in it: who asks for what has changed since its last look finds them.
        """
        return await self.carry_out(lambda one: writing.write(one, changes, clock()))

    async def carry_out(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` returns in one transaction; done again until the database commits it.

        A commit whose answer was lost is made once more: what is written may be written twice.
        """
        backoff = Backoff(first=0.5, most=15.0)
        while True:
            try:
                return await self.once(work)
            except HistoryError as error:
                seconds = backoff.next()
                _log.warning("the history: try again in %.1f s: %s", seconds, error)
                await asyncio.sleep(seconds)

    async def once(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` returns in one transaction.

        Who lost the lease commits nothing more and waits here: it is cancelled in a moment.

        Raises:
            HistoryError: The database did not do it.
        """
        async with self._turn:
            try:
                return await asyncio.to_thread(self._once, work)
            except _LeaseLostError:
                _log.warning("the history: another one leads by now, which writes what is missing")
        return await asyncio.Future()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` reads, beside those who write.

        Raises:
            HistoryError: It cannot be read now.
        """
        return await asyncio.to_thread(self._read, work)

    def _read(self, work: Callable[[Connection], T]) -> T:
        if self._reader is None:
            self._reader = opening.open_history(self._name)
        try:
            with self._reader.connect() as connection:
                return work(connection)
        except SQLAlchemyError as error:
            raise self._failed(error) from error

    async def clean(self, keep: float) -> None:
        """Remove what ended more than `keep` seconds ago, again and again, until cancelled."""

        def remove(connection: Connection) -> int:
            return retention.remove(connection, time.time() - keep)

        while True:
            removed = await self.carry_out(remove)
            if not removed:
                await asyncio.sleep(_CLEAN)

    def _open(self) -> Engine:
        if self._engine is None:
            self._engine = opening.open_history(self._name, writes=True)
        return self._engine

    def _once(self, work: Callable[[Connection], T]) -> T:
        try:
            with self._open().begin() as connection:
                result = work(connection)
                # A process that was held up may come to this after another one took its lease, and
                # a transaction goes on in its thread although who began it was cancelled.
                if not self._leads():
                    raise _LeaseLostError
                return result
        except SQLAlchemyError as error:
            raise self._failed(error) from error

    def _failed(self, error: SQLAlchemyError) -> HistoryError:
        shown = opening.shown(opening.address(self._name))
        return HistoryError(f"{shown}: {opening.reason(error)}")

    def close(self) -> None:
        """Close it."""
        for engine in (self._engine, self._reader):
            if engine is not None:
                engine.dispose()
