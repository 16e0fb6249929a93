"""The time that a line begins with, and what stands before it.

2026-01-31T12:00:00.123456789Z step 3          (kubectl logs --timestamps, RFC 3339)
2026-01-31 12:00:00,123 - INFO - step 3        (Python's logging)
[2026-01-31 12:00:00,123] [INFO] step 3        (DeepSpeed)
I0131 12:00:00.123456 140 train.py:3] step 3   (glog: no year)
    {"time": "2026-01-31T12:00:00Z", "step": 3}    (lines of JSON)
    [rank0]:step 3                                 (torchrun)
[1,0]<stdout>:step 3                           (mpirun, horovodrun)
"""

import datetime as dt
import re

_RANK = re.compile(
    r"\[(?:\d{1,6},(\d{1,6})\]\s?<std(?:out|err)>|(?:rank|default)\s?(\d{1,6})\]):\s?"
)
_JSON_TIME = re.compile(r"\{.{0,400}?\"(?:@?timestamp|time|ts|asctime)\":\s?\"")
_DATE = re.compile(
    r"\[?(\d{4})[-/](\d{2})[-/](\d{2})[T ](\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?"
    r"\s?(?:(Z|UTC)|([+-])(\d{2}):?(\d{2}))?\]?"
)
_GLOG = re.compile(r"[IWE](\d{2})(\d{2}) (\d{2}):(\d{2}):(\d{2})\.(\d{6})\s")
#: Of stamps without a year; only differences count.
_SOME_YEAR = 2000


def split(text: str) -> tuple[float | None, int | None, str]:
    """Return the time in seconds since the epoch, the rank, and the rest of a line.

    A time without a zone is taken for UTC: what counts is how much time passes between lines.
    """
    rank = None
    if found := _RANK.match(text):
        rank, text = int(found[1] or found[2]), text[found.end() :]
    head = _JSON_TIME.match(text) if text.startswith("{") else None
    if found := _DATE.match(text, head.end() if head else 0):
        at = _seconds([int(found[part]) for part in range(1, 7)], found[7])
        if at is not None and found[9]:
            away = int(found[10]) * 3600 + int(found[11]) * 60
            at += -away if found[9] == "+" else away
        return at, rank, text if head else text[found.end() :].lstrip()
    if found := _GLOG.match(text):
        parts = [_SOME_YEAR, *(int(found[part]) for part in range(1, 6))]
        return _seconds(parts, found[6]), rank, text[found.end() :]
    return None, rank, text


def _seconds(parts: list[int], fraction: str | None) -> float | None:
    """Return the time of year, month, day, hour, minute and second; None where there is none."""
    try:
        whole = dt.datetime(*parts, tzinfo=dt.UTC).timestamp()  # type: ignore[arg-type,misc]
    except ValueError:
        return None
    return whole + (float(f"0.{fraction}") if fraction else 0.0)
