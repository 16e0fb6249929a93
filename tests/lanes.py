"""In which order tests run, and which of them in one process: those that share a cluster."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

#: Folders and files whose tests share a cluster, or have a long one of their own, in the order of
#: starting: what takes longest comes first. In a lane what is named later, and more exactly, comes
#: later. Any other file is on its own.
LANES = (
    # Three with a real node each: that of the longest trainings, that of the images and of Alnair
    # as pods, and that of all else.
    (
        "integration/real_node/test_horovod.py",
        "integration/real_node/test_torchrun.py",
        "integration/real_node/test_jobs_in_trouble.py",
    ),
    (
        "integration/images",
        "integration/local/test_real_node_churn.py",
        "integration/real_node/test_upgrade_from_before.py",
        "integration/real_node/test_installed",
    ),
    # The last take the agent away, and then the node.
    (
        "integration/real_node",
        "integration/real_node/test_upgrade.py",
        "integration/real_node/test_node.py",
    ),
    ("integration/agent", "integration/kube", "integration/local"),
    ("integration/replay",),
    # Short ones of their own, one after the other; the first three share a cluster.
    ("integration/report", "integration/backup", "integration/check"),
    ("integration/chart", "integration/doctor", "integration/history", "integration/profile"),
    ("integration/scheduler/test_churn.py",),
    ("integration/scheduler/test_elastic_chaos.py",),
    ("integration/scheduler/test_differential",),
    ("integration/demo",),
    ("integration/scheduler/test_native_groups.py",),
    ("integration/scheduler/test_only_scheduler.py",),
    ("integration/scheduler",),
    ("integration",),
)
#: In parallel these lanes keep three processes busy from the beginning, while the other runs unit
#: tests: what is longest, and waits most, is not what the others wait for in the end.
LONGEST = (
    "integration/real_node/test_horovod.py",
    "integration/real_node",
    "integration/scheduler",
)
#: In parallel these begin when all unit tests are taken: they would be what is waited for, and
#: the last tests, native ones, are short and keep all cores busy.
LONG = (
    "integration/images",
    "integration/agent",
    "integration/replay",
    "integration/report",
    "integration/chart",
    "integration/scheduler/test_churn.py",
    "integration/scheduler/test_elastic_chaos.py",
)
STAGES = ("unit", "native", "scenarios", "integration")


def inside(nodeid: str) -> str:
    """The path of a test's file in `tests/`."""
    return nodeid.partition("::")[0].removeprefix("tests/")


def stage(nodeid: str) -> str:
    """The folder of `tests/` that a test is in."""
    return inside(nodeid).partition("/")[0]


def order(stage: str) -> int:
    """Which stage comes first: a number."""
    return STAGES.index(stage) if stage in STAGES else len(STAGES)


def lane(nodeid: str) -> str:
    """What runs in one process, one after the other."""
    path = inside(nodeid)
    return next((lane[0] for lane in LANES if path.startswith(lane)), path)


def place(nodeid: str, *, parallel: bool) -> tuple[int, int, int]:
    """Sorts tests by stage, then by lane, then by place in the lane."""
    its, name, path = stage(nodeid), lane(nodeid), inside(nodeid)
    rank = next((i for i, lane in enumerate(LANES) if lane[0] == name), len(LANES))
    parts = LANES[rank] if rank < len(LANES) else ()
    within = max((i for i, part in enumerate(parts) if path.startswith(part)), default=0)
    if parallel and name in LONGEST:
        return -1, rank, within
    if parallel and name in LONG:
        return order("unit"), len(LANES) + 1 + rank, within
    return order(its), rank, within


class Took(NamedTuple):
    """A part of a test (setup, call, teardown), with the seconds at which it began and ended."""

    nodeid: str
    process: str
    began: float
    ended: float


def longest(took: Iterable[Took], count: int = 10) -> list[str]:
    """Lines that say which lanes took the most seconds, when, and where: what a faster run cuts.

    Args:
        took: Parts of tests; their seconds count from anywhere.
        count: Of lanes.
    """
    lanes, processes = defaultdict[str, list[Took]](list), defaultdict[str, list[Took]](list)
    for one in took:
        lanes[f"{lane(one.nodeid)} ({one.process}"].append(one)
        processes[one.process].append(one)
    start = min(one.began for parts in processes.values() for one in parts)

    def work(parts: list[Took]) -> float:
        return sum(one.ended - one.began for one in parts)

    def end(parts: list[Took]) -> float:
        return max(one.ended for one in parts) - start

    most = sorted(lanes.items(), key=lambda item: -work(item[1]))[:count]
    found = [
        f"{work(parts):6.0f}s {name}, from {min(one.began for one in parts) - start:.0f}s"
        f" to {end(parts):.0f}s)"
        for name, parts in most
    ]
    each = (f"{name} {work(parts):.0f}s" for name, parts in sorted(processes.items()))
    ends = (f"{name} at {end(parts):.0f}s" for name, parts in sorted(processes.items()))
    return [*found, f"in all: {', '.join(each)}", f"done: {', '.join(ends)}"]
