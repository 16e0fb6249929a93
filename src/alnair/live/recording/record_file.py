"""Reads records, in which earlier versions kept what happened in a cluster: lines of JSON.

Whoever wrote one could be killed at any moment: the last line may be cut short, and is passed over.
What is kept today is a history in a database.
"""

from pathlib import Path

import msgspec

from alnair.live.recording.recorded_cluster import Known, Line


class RecordError(Exception):
    """A record that cannot be read; the message says which, where, and what to do."""


def load(path: Path) -> Known:
    """Return what a record says; a last line that was cut short is left out.

    Raises:
        RecordError: it cannot be read, is not a record, or is damaged.
    """
    known = Known()
    decode = msgspec.json.Decoder(Line).decode
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if not text.endswith(b"\n"):
                    break
                try:
                    line = decode(text)
                except msgspec.MsgspecError as error:
                    raise RecordError(f"{path}, line {number}: {error}: it is damaged") from error
                if number == 1 and line.head is None:
                    break
                known.take(line)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordError(f"{path}: cannot be read ({reason}): check the path") from error
    if known.head is None:
        raise RecordError(
            f"{path}: this is not a record: name one, a history, or what 'alnair simulate' wrote"
        )
    return known
