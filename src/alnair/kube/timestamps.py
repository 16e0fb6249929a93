"""Times as the API writes them."""

from datetime import datetime


def timestamp(text: str) -> float:
    """Return an RFC 3339 time in seconds since the epoch, or 0 if it cannot be read."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
