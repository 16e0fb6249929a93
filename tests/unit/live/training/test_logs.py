"""Which lines of a job's log are wanted."""

from alnair.live.training.logs import LogPod, Wanted, chosen, of_rank

LAUNCHER = LogPod("l-x", "u", "launcher", "launcher", started=True)
LINES = [
    b"[1]<stdout>:step 1 loss 2.0",
    b"Mon Nov 23 14:00:00 2026[0]<stderr>:warning",
    b"[0]<stdout>:",
    b"[10]<stdout>:[0]<stdout>:not its own",
    b"horovodrun waits",
]


def test_a_rank_of_horovod_is_told_from_others_by_what_horovodrun_writes_before() -> None:
    assert chosen(LINES, LAUNCHER, Wanted(rank=0)) == [b"warning", b""]
    assert chosen(LINES, LAUNCHER, Wanted(rank=10)) == [b"[0]<stdout>:not its own"]
    assert of_rank(b"horovodrun waits", 0) is None


def test_without_a_rank_all_lines_are_wanted() -> None:
    assert chosen(LINES, LAUNCHER, Wanted()) == LINES
    worker = LogPod("w-0", "u", "worker", "worker-0", started=True)
    assert chosen(LINES, worker, Wanted(rank=0)) == LINES
