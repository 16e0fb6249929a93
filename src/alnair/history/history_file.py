"""Histories on disk: lines of JSON, compressed if the name ends in .gz.

The first line says what it is; then comes one line per node, job, pod and pair; the last one says
how many there were, so that a file that was cut short is not taken for a whole one. Equal histories
give equal bytes.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from alnair.history import atomic_file
from alnair.history.history import History, JobHistory, NodeHistory, PairRate, PodHistory

T = TypeVar("T")


class HistoryFileError(Exception):
    """A file that cannot be used; the message says which, where, and what to do."""


class _Head(msgspec.Struct, kw_only=True):
    """What the file is, and what of a history is one value."""

    format: Literal["alnair-history"]
    v: Literal[1]
    end: float
    decisions: int
    decision_seconds: float
    source: str


class _Line(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One of these is there."""

    node: NodeHistory | None = None
    job: JobHistory | None = None
    pod: PodHistory | None = None
    pair: PairRate | None = None
    lines: int | None = None


def save(history: History, path: Path) -> None:
    """Write a history; what was in the file is replaced at once or, if this fails, not at all.

    Raises:
        OSError: it cannot be written.
    """
    data = io.BytesIO()
    encode = msgspec.json.Encoder().encode
    count = 0
    for item in _items(history):
        data.write(encode(item) + b"\n")
        count += 1
    data.write(encode(_Line(lines=count)) + b"\n")
    content = data.getvalue()
    if path.suffix == ".gz":
        content = gzip.compress(content, 6, mtime=0)
    atomic_file.write(path, content)


def _items(history: History) -> Iterator[_Head | _Line]:
    yield _Head(
        format="alnair-history",
        v=1,
        end=history.end,
        decisions=history.decisions,
        decision_seconds=history.decision_seconds,
        source=history.source,
    )
    for node in history.nodes.values():
        yield _Line(node=node)
    for job in history.jobs.values():
        yield _Line(job=job)
    for uid, pod in history.pods.items():
        assert uid == pod.uid
        yield _Line(pod=pod)
    for pair in history.pairs:
        yield _Line(pair=pair)


def load(path: Path) -> History:
    """Read a history.

    Raises:
        HistoryFileError: it cannot be read, is not one, is cut short, or contradicts itself.
    """
    lines = _content(path).splitlines()
    head = _decoded(path, 1, lines[0] if lines else b"", msgspec.json.Decoder(_Head))
    found = History(
        end=head.end,
        nodes={},
        jobs={},
        pods={},
        decisions=head.decisions,
        decision_seconds=head.decision_seconds,
        source=head.source,
    )
    decoder = msgspec.json.Decoder(_Line)
    for number, text in enumerate(lines[1:], 2):
        line = _decoded(path, number, text, decoder)
        if line.lines is not None:
            if line.lines != number - 1 or number != len(lines):
                raise _wrong(path, number, "lines are missing or too many: get the file anew")
            break
        if (name := _take(found, line)) is not None:
            raise _wrong(path, number, f"{name!r} is there twice: keep one")
    else:
        raise _wrong(path, len(lines), "it ends too early: get the whole file")
    _check(found, path)
    return found


def _take(found: History, line: _Line) -> str | None:
    """Add what a line has; returns its name if that is there already."""
    if line.node is not None:
        name = line.node.node.name
        return name if found.nodes.setdefault(name, line.node) is not line.node else None
    if line.job is not None:
        name = line.job.name
        return name if found.jobs.setdefault(name, line.job) is not line.job else None
    if line.pod is not None:
        name = line.pod.uid
        return name if found.pods.setdefault(name, line.pod) is not line.pod else None
    if line.pair is not None:
        found.pairs.append(line.pair)
    return None


def _check(history: History, path: Path) -> None:
    """Refuse a history whose parts do not belong together."""
    for job in history.jobs.values():
        for uid in job.pods:
            if uid not in history.pods:
                raise _wrong(path, 0, f"job {job.name!r} has a pod {uid!r} that is not there")
    gpus = {name: {gpu.uuid for gpu in item.node.gpus} for name, item in history.nodes.items()}
    for pod in history.pods.values():
        for stay in pod.stays:
            if stay.node not in gpus:
                raise _wrong(path, 0, f"pod {pod.uid!r} is on {stay.node!r}, which is no node")
            if other := {part.uuid for part in stay.gpus} - gpus[stay.node]:
                what = ", ".join(sorted(other))
                raise _wrong(path, 0, f"pod {pod.uid!r}: node {stay.node} has no GPU {what}")
            if stay.end is not None and stay.end < stay.begin:
                raise _wrong(path, 0, f"pod {pod.uid!r}: a stay ends before it begins")


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise HistoryFileError(
            f"{path}: the compressed file is damaged ({error}): get it anew"
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise HistoryFileError(f"{path}: cannot be read ({reason}): check the path") from error


def _decoded(path: Path, number: int, text: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(text)
    except msgspec.MsgspecError as error:
        advice = "is it a history that 'alnair simulate' or 'alnair report' wrote?"
        raise _wrong(path, number, f"{error}: {advice}") from error


def _wrong(path: Path, line: int, text: str) -> HistoryFileError:
    where = f", line {line}" if line else ""
    return HistoryFileError(f"{path}{where}: {text}")
