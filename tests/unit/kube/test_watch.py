"""Watch lines: however the network cuts them, whatever stands in them."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.kube.codec import Codec, Lines, WatchEvent
from alnair.kube.errors import ApiError, Gone, ProtocolError
from alnair.kube.watch import LineSplitter
from kit.fault_server import FaultServer, Thing, line, status

CODEC = Codec(Thing)


def thing(name: str, value: object = 1, version: int = 7) -> dict[str, object]:
    made = FaultServer(version=version).make(name, value)
    made["ignored"] = {"text": 'line\nbreak \\ and "quotes" and }{'}
    return made


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    return [data[begin:end] for begin, end in pairwise(ends)]


def read(chunks: list[bytes]) -> tuple[list[WatchEvent[Thing]], str]:
    """All events of a stream and the version after them."""
    cutter, events, version = LineSplitter(), [], ""
    for chunk in chunks:
        whole = cutter.feed(chunk)
        if whole:
            lines = CODEC.lines(whole)
            events += lines.events
            version = lines.resource_version or version
    return events, version


kinds = st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
streams = st.lists(st.tuples(kinds, st.text(min_size=1, max_size=8)), max_size=12)


@given(streams, st.lists(st.integers(0, 4000), max_size=60))
def test_any_cut_of_the_stream_gives_the_same_events(
    stream: list[tuple[str, str]], places: list[int]
) -> None:
    data = b"".join(
        line(kind, thing(name, version=number)) for number, (kind, name) in enumerate(stream)
    )
    events, version = read(cut(data, places))
    told = [(kind, name) for kind, name in stream if kind != "BOOKMARK"]
    assert [(event.type, event.object.metadata.name) for event in events] == told
    assert version == (str(len(stream) - 1) if stream else "")
    assert (events, version) == read([data])


@given(streams, st.integers(1, 200), st.lists(st.integers(0, 4000), max_size=20))
def test_half_a_line_at_the_end_is_never_told(
    stream: list[tuple[str, str]], kept: int, places: list[int]
) -> None:
    data = b"".join(line(kind, thing(name)) for kind, name in stream)
    last = line("ADDED", thing("cut"))
    assert read(cut(data + last[: min(kept, len(last) - 1)], places)) == read([data])


def test_an_error_event_is_told_after_the_events_before_it() -> None:
    lines = CODEC.lines(
        line("ADDED", thing("a", version=9)) + line("ERROR", status(410, "Expired"))
    )
    assert [event.object.metadata.name for event in lines.events] == ["a"]
    assert lines.resource_version == "9"
    assert isinstance(lines.error, Gone)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"<html>bad gateway</html>\n", "malformed"),
        (b'{"type":"ADDED"}\n', "object"),
        (b'{"type":"ADDED","object":[]}\n', "Expected `object`"),
        (b"[1]\n", "Expected `object`"),
        (b'{"type":"ERROR","object":7}\n', "Expected `object`"),
        (b"\xff\xfe\n", "malformed"),
    ],
)
def test_rubbish_is_a_protocol_error_that_shows_it(text: bytes, says: str) -> None:
    error = CODEC.lines(text).error
    assert isinstance(error, ProtocolError)
    assert says in str(error)


def test_empty_lines_mean_nothing() -> None:
    assert CODEC.lines(b"\n\n").events == []


def test_an_object_that_does_not_fit_is_named_with_its_place() -> None:
    data = (
        line("ADDED", thing("a")) + line("MODIFIED", thing("bad", "x")) + line("ADDED", thing("b"))
    )
    lines: Lines[Thing] = CODEC.lines(data)
    assert [event.object.metadata.name for event in lines.events] == ["a", "b"]
    (bad,) = lines.undecodable
    assert (bad.type, bad.namespace, bad.name, bad.after) == ("MODIFIED", "n", "bad", 1)
    with pytest.raises(ProtocolError, match=r"n/bad: does not fit our type: .*value"):
        lines.check()


def test_an_unknown_event_type_is_not_taken_for_a_change() -> None:
    lines = CODEC.lines(line("RENAMED", thing("a")))
    assert lines.events == []
    assert lines.undecodable[0].type == "RENAMED"


def test_an_error_without_a_code_is_a_server_error() -> None:
    text = json.dumps({"type": "ERROR", "object": {"message": "etcd is away"}}).encode() + b"\n"
    error = CODEC.lines(text).error
    assert isinstance(error, ApiError)
    assert error.status == 500
