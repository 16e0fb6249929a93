"""The cases of vgpu_accuracy: loads with their grids, limits, pairs, and GPUs less kind."""

import os
from typing import Final

from native.shares import TWO_STREAMS

#: The grid belongs to a load: who charges blocks and not time gets one of some 20 us a block.
LOADS: Final = {
    "tiny": "kernel:ns_4000_j20:0:132",
    "five_ms": "kernel:ns_5000000_j20:0:33000",
    "long_sync": "kernel:ns_50000000_j20:1:330000",
    "graphs": "graph:ns_100000_j20:20:660",
    "bimodal": "kernel:bi_4000_2000000_10:0:132",
    "two_streams": f"{TWO_STREAMS}:660",
}
SINGLE: Final = ("tiny", "five_ms", "long_sync", "graphs", "bimodal")
LIMITS: Final = (25, 50, 75)
PAIRS: Final = (
    ("tiny", "five_ms"),
    ("five_ms", "long_sync"),
    ("long_sync", "graphs"),
    ("graphs", "tiny"),
    ("bimodal", "tiny"),
    ("bimodal", "five_ms"),
)
SPLITS: Final = ((30, 70), (70, 30), (50, 50))

#: Of each row of the sweep: who shares the GPU, with which limits.
SWEPT: Final = (
    (("tiny",), (25,)),
    (("five_ms",), (50,)),
    (("bimodal",), (75,)),
    (("graphs", "tiny"), (30, 70)),
    (("five_ms", "tiny"), (50, 50)),
    (("bimodal", "five_ms"), (70, 30)),
)
#: A few of them, for a test.
SWEPT_SHORTLY: Final = (SWEPT[0], SWEPT[4])
#: Row: options of the fake GPU (native/fakegpu/fakegpu.h), and cases of its own where it has any.
ROWS: Final[dict[str, dict[str, int]]] = {
    "default": {},
    "slices of 0.5 ms": {"slice_us": 500},
    "slices of 1 ms": {"slice_us": 1000},
    "slices of 5 ms": {"slice_us": 5000},
    "slices of 10 ms": {"slice_us": 10000},
    "slices of 0.4 to 3.6 ms": {"slice_uneven": 80},
    "first launches load for 100 ms": {"load_us": 100_000},
    "tails of 30 % of a kernel": {"tail": 30},
    "kernels on half of the SMs": {},
    "clock lower by 40 %, every other second": {"clock_drop": 40},
    "30 % slower beside others": {"contention": 43},
    "NVML: last sample only": {"util_last": 1},
    "NVML: a second late": {"util_late_ms": 1000},
    "NVML: foreign pids": {"util_foreign": os.getpid()},
}
OWN_CASES: Final = {
    "kernels on half of the SMs": (
        (("two_streams",), (25,)),
        (("two_streams", "five_ms"), (30, 70)),
        (("two_streams", "tiny"), (50, 50)),
    ),
    "tails of 30 % of a kernel": (
        (("two_streams",), (25,)),
        (("five_ms",), (50,)),
        (("two_streams", "tiny"), (50, 50)),
    ),
}
