"""Requests that nobody cuts off: who is told to stop waits for the answer to what was sent."""

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

_T = TypeVar("_T")

#: Seconds for which an answer is waited for by those who are told to stop.
PATIENCE: Final = 2.0


async def answered(request: Awaitable[_T]) -> _T:
    """Return the answer to a request, and wait for it also when cancelled.

    The API server may carry out a request whose connection was just closed. A leader that then
    gives its lease back has acted while another leads.

    Raises:
        asyncio.CancelledError: It was cancelled; the answer has come, or did not for `PATIENCE`.
        Exception: What the request raised.
    """
    sent = asyncio.ensure_future(request)
    try:
        return await asyncio.shield(sent)
    except asyncio.CancelledError:
        await asyncio.wait((sent,), timeout=PATIENCE)
        if not sent.cancel() and not sent.cancelled():
            sent.exception()  # nobody is there any more to be told of it
        raise
