"""In which order tests run, and which of them in one process: those that share a cluster."""

#: Folders and files whose tests share a cluster, or have a long one of their own, in the order of
#: starting: what takes longest comes first. Any other file is on its own.
LANES = (
    ("integration/scheduler/test_churn.py",),
    ("integration/scheduler/test_native_groups.py",),
    ("integration/scheduler/test_only_scheduler.py",),
    ("integration/scheduler/test_differential",),
    ("integration/scheduler",),
    ("integration/demo",),
    ("integration/replay",),
    # The first compares the whole machine before and after: no other real node may come meanwhile.
    (
        "integration/local/test_real_node.py",
        "integration/local/test_real_node_churn.py",
        "integration/real_node",
        "integration/images",
    ),
    ("integration/kube", "integration/agent", "integration/local"),
    ("integration",),
)
#: In parallel these tests keep one process busy, while the other one runs unit tests.
LONGEST = "integration/scheduler"
STAGES = ("unit", "native", "scenarios", "integration")


def inside(nodeid: str) -> str:
    """The path of a test's file in `tests/`."""
    return nodeid.partition("::")[0].removeprefix("tests/")


def stage(nodeid: str) -> str:
    """The folder of `tests/` that a test is in."""
    return inside(nodeid).partition("/")[0]


def lane(nodeid: str) -> str:
    """What runs in one process, one after the other."""
    path = inside(nodeid)
    return next((lane[0] for lane in LANES if path.startswith(lane)), path)


def place(nodeid: str, *, parallel: bool) -> tuple[int, int]:
    """Sorts tests by stage, then by lane."""
    its, name = stage(nodeid), lane(nodeid)
    if parallel and name == LONGEST:
        return -1, 0
    rank = next((i for i, lane in enumerate(LANES) if lane[0] == name), len(LANES))
    return STAGES.index(its) if its in STAGES else len(STAGES), rank
