"""Documents in annotations: which version is ours, and what reading one may raise."""

from typing import Final

import msgspec

#: What reading a document raises; the last one, when it is nested without end.
UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


def check_version(version: int) -> None:
    """Refuse a document of a version that is not ours.

    Raises:
        ValueError: it is another one.
    """
    if version != 1:
        raise ValueError(f"version {version} is not known: expected 1")
