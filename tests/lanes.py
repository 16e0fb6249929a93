"""In which order tests run, and which of them in one process: those that share a cluster."""

#: Folders and files whose tests share a cluster, or have a long one of their own, in the order of
#: starting: what takes longest comes first. In a lane what is named later, and more exactly, comes
#: later. Any other file is on its own.
LANES = (
    # The last compares the whole machine before and after: no other real node may come meanwhile.
    (
        "integration/images",
        "integration/local/test_real_node_churn.py",
        "integration/real_node",
        "integration/real_node/test_upgrade.py",
        "integration/real_node/test_node.py",
    ),
    ("integration/agent", "integration/kube", "integration/local"),
    ("integration/scheduler/test_churn.py",),
    ("integration/replay",),
    ("integration/scheduler/test_differential",),
    ("integration/demo",),
    ("integration/scheduler/test_native_groups.py",),
    ("integration/scheduler/test_only_scheduler.py",),
    ("integration/scheduler",),
    ("integration",),
)
#: In parallel these tests keep one process busy, while the others run unit tests.
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


def place(nodeid: str, *, parallel: bool) -> tuple[int, int, int]:
    """Sorts tests by stage, then by lane, then by place in the lane."""
    its, name, path = stage(nodeid), lane(nodeid), inside(nodeid)
    if parallel and name == LONGEST:
        return -1, 0, 0
    rank = next((i for i, lane in enumerate(LANES) if lane[0] == name), len(LANES))
    parts = LANES[rank] if rank < len(LANES) else ()
    within = max((i for i, part in enumerate(parts) if path.startswith(part)), default=0)
    return STAGES.index(its) if its in STAGES else len(STAGES), rank, within
