"""What a check found, and how bad it is."""

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """How bad it is: an error keeps something from working, a warning may."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True):
    """One thing that a check found.

    Attributes:
        level: How bad it is.
        what: A sentence.
        where: The object or file; "" for the cluster or node as a whole.
        fix: A command that mends it, or shows more; "" where nothing is to be done.
    """

    level: Level
    what: str
    where: str = ""
    fix: str = ""


class Found(msgspec.Struct, frozen=True):
    """A finding, and whose."""

    check: str
    finding: Finding


def ok(what: str, where: str = "") -> Finding:
    """Say that it is well."""
    return Finding(Level.OK, what, where)


def warning(what: str, where: str = "", *, fix: str = "") -> Finding:
    """Say what may keep something from working."""
    return Finding(Level.WARNING, what, where, fix)


def error(what: str, where: str = "", *, fix: str = "") -> Finding:
    """Say what keeps something from working."""
    return Finding(Level.ERROR, what, where, fix)
