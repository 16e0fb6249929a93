"""What waits in the outbox is there whole, once, and in order, whatever ends the process."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from alnair.model.usage import CPU_CORES, Digest, PodUsage
from alnair.node.usage_outbox import OutboxError, UsageOutbox

NOON = 1_795_348_800.0
NAMES = (f"stream-{n}" for n in itertools.count())


def usage(uid: str) -> PodUsage:
    metrics = {CPU_CORES: Digest(1.0, 2.0, 1.5, 60.0)}
    return PodUsage(1, "n", "ns", f"pod-{uid}", uid, NOON, NOON + 60, metrics)


class Clock:
    now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(folder: Path, clock: Clock, **most: float) -> UsageOutbox:
    return UsageOutbox(folder / "outbox", lambda: next(NAMES), clock, **most)  # type: ignore[arg-type]


def uids(box: UsageOutbox, after: int = 0) -> list[tuple[int, str]]:
    return [(seq, one.uid) for seq, one in box.after(after, 100)]


def test_what_was_added_is_read_in_order_until_it_is_kept(tmp_path: Path, clock: Clock) -> None:
    box = opened(tmp_path, clock)
    assert (box.last, uids(box)) == (0, [])
    assert [box.add(usage(uid)) for uid in "abc"] == [1, 2, 3]
    assert box.after(1, 1) == [(2, usage("b"))]
    assert box.ack(2) == 2
    assert uids(box) == [(3, "c")]
    assert box.ack(1) == 0
    assert (box.last, box.dropped, len(box)) == (3, 0, 1)


def test_another_process_goes_on_with_it(tmp_path: Path, clock: Clock) -> None:
    box = opened(tmp_path, clock)
    for uid in "abc":
        box.add(usage(uid))
    box.ack(3)
    again = opened(tmp_path, clock)
    assert again.stream == box.stream
    assert again.add(usage("d")) == 4, "a number is never given twice"
    assert uids(again) == [(4, "d")]
    assert again.uids() == {"d"}


def test_a_folder_that_was_lost_is_another_stream(tmp_path: Path, clock: Clock) -> None:
    box = opened(tmp_path, clock)
    box.add(usage("a"))
    (tmp_path / "outbox").rename(tmp_path / "lost")
    other = opened(tmp_path, clock)
    assert (other.last, uids(other)) == (0, [])
    assert other.stream != box.stream


def test_a_damaged_state_is_another_stream_and_what_waits_is_there(
    tmp_path: Path, clock: Clock
) -> None:
    box = opened(tmp_path, clock)
    box.add(usage("a"))
    (tmp_path / "outbox" / "state").write_text("{")
    other = opened(tmp_path, clock)
    assert other.stream != box.stream
    assert (uids(other), other.last) == ([(1, "a")], 1)


def test_what_was_kept_is_forgotten_though_the_process_died_before_it_did(
    tmp_path: Path, clock: Clock
) -> None:
    box = opened(tmp_path, clock)
    box.add(usage("a"))
    kept = (tmp_path / "outbox" / f"{1:020}.json").read_bytes()
    box.ack(1)
    (tmp_path / "outbox" / f"{1:020}.json").write_bytes(kept)
    (tmp_path / "outbox" / f"{2:020}.new").write_bytes(b"half of")
    again = opened(tmp_path, clock)
    assert uids(again) == []
    assert again.add(usage("b")) == 2


@pytest.mark.parametrize(
    "most",
    [
        {"most_pods": 3},
        {"most_bytes": 3 * len(msgspec.json.encode(usage("0"))) + 60},
        {"most_age": 25.0},
    ],
    ids=("pods", "bytes", "age"),
)
def test_what_nobody_fetches_is_thrown_away_and_counted(
    most: dict[str, float], tmp_path: Path, clock: Clock
) -> None:
    box = opened(tmp_path, clock, **most)
    for n in range(10):
        clock.now += 10
        box.add(usage(str(n)))
    left = uids(box)
    assert left[-1] == (10, "9")
    assert len(left) == 3
    assert box.dropped == 7
    assert opened(tmp_path, clock, **most).dropped == 7


def test_a_file_that_cannot_be_read_is_passed_over_and_counted(
    tmp_path: Path, clock: Clock
) -> None:
    box = opened(tmp_path, clock)
    for uid in "ab":
        box.add(usage(uid))
    (tmp_path / "outbox" / f"{1:020}.json").write_text("nonsense")
    assert uids(box) == [(2, "b")]
    assert box.dropped == 1


def test_what_cannot_be_written_gets_no_number(tmp_path: Path, clock: Clock) -> None:
    box = opened(tmp_path, clock)
    box.add(usage("a"))
    (tmp_path / "outbox").rename(tmp_path / "away")
    with pytest.raises(OSError, match="No such file"):
        box.add(usage("b"))
    with pytest.raises(OSError, match="No such file"):
        box.ack(1)
    (tmp_path / "away").rename(tmp_path / "outbox")
    assert box.add(usage("b")) == 2
    assert uids(box) == [(1, "a"), (2, "b")]


def test_a_folder_that_is_none_is_said(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "outbox").write_text("")
    with pytest.raises(OutboxError, match="File exists; what pods used is not kept"):
        opened(tmp_path, clock)


def test_books_of_running_pods_are_there_whole_or_not_at_all(tmp_path: Path, clock: Clock) -> None:
    box = opened(tmp_path, clock)
    assert box.running() is None
    box.save_running(b"books")
    assert opened(tmp_path, clock).running() == b"books"
    (tmp_path / "outbox" / "running").write_bytes(b"00000000\nbooks")
    assert box.running() is None


WRITER = """
import sys, time
from pathlib import Path
from alnair.model.usage import PodUsage
from alnair.node.usage_outbox import UsageOutbox
box = UsageOutbox(Path(sys.argv[1]), lambda: "s", time.time)
while True:
    n = box.last + 1
    seq = box.add(PodUsage(1, "n", "ns", "p", str(n), 0.0, 1.0))
    print(seq, flush=True)
    if seq % 7 == 0:
        box.ack(seq - 3)
"""


def test_nothing_that_was_said_to_be_kept_is_lost_when_the_process_is_killed(
    tmp_path: Path, clock: Clock
) -> None:
    said = 0
    for rounds in range(4):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "outbox")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(20 + rounds):
                said = int(writer.stdout.readline())
            os.kill(writer.pid, signal.SIGKILL)
            for line in writer.stdout:  # what it had said by then
                if line.endswith("\n"):
                    said = int(line)
        box = opened(tmp_path, clock)
        found = uids(box)
        assert found == [(seq, str(seq)) for seq, _ in found]
        assert found[-1][0] in (said, said + 1)
        assert [seq for seq, _ in found] == list(range(found[0][0], found[-1][0] + 1))
        assert box.dropped == 0
        state = msgspec.json.decode((tmp_path / "outbox" / "state").read_bytes())
        assert state["acked"] == found[0][0] - 1
