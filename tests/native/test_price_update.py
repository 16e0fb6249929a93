"""The price of a kernel as a table: what is known, a launch that was timed, what is known then."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from native import build

US, MS = 1_000, 1_000_000
#: When a sample comes back, and "now" as the price remembers times (ms, never even).
NOW = 10_000 * MS
NOW_MS = 10_001

_U32, _U64, _FLOAT = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_float


class Contention(ctypes.Structure):
    """struct vg_contention."""

    _fields_ = (
        ("neighbours", _U32),
        ("siblings", _U32),
        ("is_quiet", ctypes.c_bool),
        ("others_ppm", _U64),
        ("period", _U64),
        ("begin", _U64),
        ("length", _U64),
    )


class Price(ctypes.Structure):
    """struct vg_price."""

    _fields_ = (
        ("count", _U32),
        ("long_runs", _FLOAT),
        ("mean", _FLOAT),
        ("square", _FLOAT),
        ("least", _FLOAT),
        ("alone_ms", _U32),
        ("doubt_ms", _U32),
        ("doubts", _U32),
        ("doubted", _FLOAT),
        ("doubted_like", _FLOAT),
    )


class Timed(ctypes.Structure):
    """struct vg_timed."""

    _fields_ = (
        ("start", _U64),
        ("elapsed", _U64),
        ("charged", _U64),
        ("stands_for", _U32),
        ("passed", _U64),
        ("now", _U64),
        ("contention", Contention),
    )


class Change(ctypes.Structure):
    """struct vg_price_change."""

    _fields_ = (("price", Price), ("owed", ctypes.c_int64))


Update = Callable[[Price, Timed], Change]


@pytest.fixture(scope="module")
def update(tmp_path_factory: pytest.TempPathFactory) -> Update:
    """vg_price_update of a library that holds nothing else."""
    library = tmp_path_factory.mktemp("price") / "price_update.so"
    sources = build.ROOT / "native" / "vgpu"
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    source = str(sources / "compute" / "price_update.c")
    build.checked("cc", *flags, "-I", str(sources), source, "-o", str(library), environment={})
    function = ctypes.CDLL(str(library)).vg_price_update
    function.argtypes, function.restype = [Price, ctypes.POINTER(Timed)], Change
    return lambda price, timed: function(price, ctypes.byref(timed))


def known(ns: float, count: int = 100, **more: float) -> dict[str, Any]:
    """A price whose samples were all alike, the last one just now and without anybody else."""
    alike = {"count": count, "mean": ns, "square": ns * ns, "least": ns, "alone_ms": NOW_MS - 100}
    return {**alike, **more}


QUIET = {"is_quiet": True}
BESIDE = {"neighbours": 1}
#: The tenant has the first half of each 100 ms.
TURNS = {"neighbours": 1, "period": 100 * MS, "begin": 0, "length": 50 * MS}


@dataclass
class Case:
    """A row: fields of the price before, of the launch, of the price after; and what is owed."""

    name: str
    before: dict[str, Any]
    contention: dict[str, Any]
    elapsed: int
    after: dict[str, Any]
    owed: int
    charged: int = 10 * US
    stands_for: int = 1
    start: int = 0
    passed: int = 0


CASES = [
    Case(
        "the first sample is the price",
        {}, QUIET, 30 * US,
        {"count": 1, "mean": 30 * US, "least": 30 * US, "alone_ms": NOW_MS}, 20 * US,
    ),
    Case(
        "and settles all launches that it stands for",
        {}, QUIET, 30 * US,
        {"count": 1, "mean": 30 * US}, 16 * 20 * US, stands_for=16,
    ),
    Case(
        "so does each one later, or who changes his kernels had the change for nothing",
        known(10 * US), QUIET, 12 * US,
        {"count": 101, "mean": 10.125 * US}, 16 * 2 * US, stands_for=16,
    ),
    Case(
        "but what it stands for took little more than passed since the one timed before",
        known(10 * US, long_runs=0.5), QUIET, 50 * MS,
        {"count": 101}, 50 * MS + 110 * MS - 16 * 10 * US, stands_for=16, passed=60 * MS,
    ),
    Case(
        "a first sample that spans the loading of code is charged, and does not count",
        known(50 * MS, 1), QUIET, 10 * US,
        {"count": 1, "mean": 10 * US, "square": (10 * US) ** 2}, 0,
    ),
    Case(
        "nor does a single outlier before the mean stands, which is owed",
        known(10 * US, 20, doubts=1, doubted=50 * MS, doubt_ms=NOW_MS - 152), QUIET, 10 * US,
        {"count": 21, "mean": 10 * US, "doubts": 0}, 49_990 * US,
    ),
    Case(
        "what took less than it was charged is credited",
        known(10 * US), QUIET, 8 * US,
        {"mean": 9.875 * US, "least": 8 * US}, -2 * US,
    ),
    Case(
        "the shortest run is forgotten slowly",
        known(10 * US), QUIET, 12 * US,
        {"least": 10.001 * US}, 2 * US,
    ),
    Case(
        "a kernel whose runs differ moves by less",
        known(10 * US, 1000, square=2 * (10 * US) ** 2), QUIET, 20 * US,
        {"mean": 10 * US + 10 * US / 1001}, 10 * US,
    ),
    Case(
        "of a long kernel the last sixteen count, however much they differ",
        known(MS, 1000, square=2 * MS**2), QUIET, 2 * MS,
        {"mean": MS + MS / 16}, MS, charged=MS,
    ),
    Case(
        "beside another, a long launch was half the other's",
        {}, BESIDE, 10 * MS,
        {"count": 1, "mean": 5 * MS, "alone_ms": 0}, 5 * MS - 10 * US,
    ),
    Case(
        "or as much less as the other is known to use",
        {}, {**BESIDE, "others_ppm": 200_000}, 10 * MS,
        {"mean": 8 * MS}, 8 * MS - 10 * US,
    ),
    Case(
        "but never less than equal slices",
        {}, {**BESIDE, "others_ppm": 900_000}, 10 * MS,
        {"mean": 5 * MS}, 5 * MS - 10 * US,
    ),
    Case(
        "of three, a third",
        {}, {"neighbours": 2}, 30 * MS,
        {"mean": 10 * MS}, 10 * MS - 10 * US,
    ),
    Case(
        "a launch shorter than half a slice was not cut",
        {}, BESIDE, 900 * US,
        {"mean": 900 * US}, 890 * US,
    ),
    Case(
        "in turns, time in the own window is the own",
        {}, TURNS, 20 * MS,
        {"mean": 15 * MS}, 15 * MS - 10 * US, start=40 * MS,
    ),
    Case(
        "and a launch inside the own window was alone",
        {}, TURNS, 100 * US,
        {"mean": 100 * US, "alone_ms": NOW_MS}, 90 * US, start=20 * MS,
    ),
    Case(
        "not so at its edge, where a neighbour may still be at work",
        {}, TURNS, 100 * US,
        {"mean": 100 * US, "alone_ms": 0}, 90 * US, start=5 * MS,
    ),
    Case(
        "what is shorter than the edge is judged by its start, long runs as short ones",
        known(10 * US, 50, long_runs=0.5, alone_ms=0), TURNS, 2 * MS,
        {"alone_ms": NOW_MS}, 1_990 * US, start=43 * MS,
    ),
    Case(
        "what is longer has to end before the edge",
        known(10 * US, 50, long_runs=0.5, alone_ms=0), TURNS, 20 * MS,
        {"alone_ms": 0}, 19_990 * US, start=25 * MS,
    ),
    Case(
        "a window that begins elsewhere is as good",
        {}, {**TURNS, "begin": 70 * MS}, 100 * US,
        {"alone_ms": NOW_MS}, 90 * US, start=190 * MS,
    ),
    Case(
        "while an undisturbed price stands, a disturbed sample changes nothing",
        known(5 * MS), BESIDE, 20 * MS,
        {"count": 100, "mean": 5 * MS}, 0, charged=5 * MS,
    ),
    Case(
        "after three seconds it is used",
        known(5 * MS, alone_ms=NOW_MS - 3001), BESIDE, 20 * MS,
        {"count": 101, "mean": 5 * MS + 5 * MS / 16}, 5 * MS, charged=5 * MS,
    ),
    Case(
        "the first undisturbed sample outweighs all disturbed ones",
        known(5 * MS, 50, alone_ms=0), QUIET, MS,
        {"count": 2, "mean": 3 * MS}, 4 * -4 * MS, charged=5 * MS, stands_for=4,
    ),
    Case(
        "but not all that is known of a kernel whose runs differ",
        known(200 * US, 300, square=10 * (200 * US) ** 2, alone_ms=0), QUIET, 4 * US,
        {"count": 257, "mean": 200 * US - 196 * US / 257}, -6 * US,
    ),
    Case(
        "a short kernel that took a slice longer was cut",
        known(10 * US, alone_ms=0), BESIDE, 2 * MS + 10 * US,
        {"mean": 10 * US}, 0,
    ),
    Case(
        "what it and its like would have taken, were they long, is remembered",
        known(10 * US, alone_ms=0), BESIDE, 2 * MS,
        {"doubted_like": 16 * MS - 16 * 10 * US}, 0, stands_for=16, passed=20 * MS,
    ),
    Case(
        "but no more than passed since the one timed before",
        known(10 * US, alone_ms=0), BESIDE, 2 * MS,
        {"doubted_like": MS + 5 * MS - 16 * 10 * US}, 0, stands_for=16, passed=5 * MS,
    ),
    Case(
        "it is owed once long runs are more frequent than cuts",
        known(10 * US, long_runs=0.5, doubted_like=64 * MS, alone_ms=0), BESIDE, 10 * US,
        {"count": 101, "doubted_like": 0}, 63 * MS,
    ),
    Case(
        "and forgotten while they are not",
        known(10 * US, doubted_like=64 * MS, alone_ms=0), BESIDE, 10 * US,
        {"count": 101, "doubted_like": 63 * MS}, 0,
    ),
    Case(
        "one that took longer than all others' slices was not",
        known(10 * US, alone_ms=0), BESIDE, 4_600 * US,
        {"mean": 10 * US + (2_300 * US - 10 * US) / 16}, 2_290 * US,
    ),
    Case(
        "nor one whose long runs are more frequent than cuts",
        known(10 * US, long_runs=0.5, alone_ms=0), BESIDE, 2 * MS,
        {"mean": 10 * US + (MS - 10 * US) / 16}, 990 * US,
    ),
    Case(
        "first samples that were cut are thrown away",
        known(10 * US, 5, mean=MS, square=MS**2, alone_ms=0), BESIDE, 10 * US,
        {"count": 1, "mean": 10 * US}, 0,
    ),
    Case(
        "a long run while nobody is known is in doubt at first",
        known(10 * US), QUIET, 2 * MS,
        {"count": 100, "mean": 10 * US, "doubts": 1, "doubted": 2 * MS, "doubt_ms": NOW_MS}, 0,
    ),
    Case(
        "what it stands for is remembered",
        known(10 * US), QUIET, 2 * MS,
        {"count": 100, "doubts": 1, "doubted_like": 30 * MS - 15 * 10 * US}, 0,
        stands_for=16, passed=20 * MS,
    ),
    Case(
        "and is owed with it",
        known(10 * US, doubts=2, doubted=2 * MS, doubted_like=17 * MS, doubt_ms=NOW_MS - 152),
        QUIET, 10 * US,
        {"count": 103, "doubts": 0, "doubted_like": 0}, 2 * 1_990 * US + 17 * MS,
    ),
    Case(
        "when nobody came for 150 ms it counts, and is owed",
        known(10 * US, doubts=2, doubted=2 * MS, doubt_ms=NOW_MS - 152), QUIET, 10 * US,
        {"count": 103, "doubts": 0}, 2 * 1_990 * US,
    ),
    Case(
        "not earlier",
        known(10 * US, doubts=2, doubted=2 * MS, doubt_ms=NOW_MS - 150), QUIET, 10 * US,
        {"count": 101, "doubts": 2}, 0,
    ),
    Case(
        "and when a neighbour came it was a cut",
        known(10 * US, doubts=2, doubted=2 * MS, doubt_ms=NOW_MS - 152, alone_ms=0), BESIDE,
        10 * US,
        {"count": 101, "doubts": 0, "mean": 10 * US}, 0,
    ),
    Case(
        "processes of a container that begin together disturb each other",
        {}, {"siblings": 1, "is_quiet": True}, 10 * MS,
        {"mean": 5 * MS, "alone_ms": 0}, 5 * MS - 10 * US,
    ),
    Case(
        "later the limit spaces them out",
        known(10 * MS), {"siblings": 1, "is_quiet": True}, 10 * MS,
        {"mean": 10 * MS, "alone_ms": NOW_MS}, 0, charged=10 * MS,
    ),
    Case(
        "how many runs are long is counted from the ninth sample on",
        known(10 * US, 8), QUIET, 2 * MS,
        {"long_runs": 1 / 64}, 0,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_what_a_timed_launch_does_to_a_price(update: Update, case: Case) -> None:
    timed = Timed(
        start=case.start,
        elapsed=case.elapsed,
        charged=case.charged,
        stands_for=case.stands_for,
        passed=case.passed,
        now=NOW,
        contention=Contention(**case.contention),
    )
    change = update(Price(**case.before), timed)
    found = {name: getattr(change.price, name) for name in case.after}
    assert found == pytest.approx(case.after, rel=1e-6)
    assert change.owed == pytest.approx(case.owed, abs=2)


def test_the_price_of_a_bimodal_kernel_is_its_mean(update: Update) -> None:
    """4 us nine times of ten, then 2 ms; alone."""
    price, owed, true = Price(), 0, 0
    for i in range(6400):
        elapsed = 2 * MS if i % 10 == 9 else 4 * US
        charged = int(price.mean) or 20 * US
        timed = Timed(
            elapsed=elapsed,
            charged=charged,
            stands_for=1,
            now=NOW + i * MS,
            contention=Contention(is_quiet=True),
        )
        change = update(price, timed)
        price, owed, true = change.price, owed + charged + change.owed, true + elapsed
    assert price.mean == pytest.approx(203.6 * US, rel=0.05)
    assert owed == pytest.approx(true, rel=0.02), "what was charged in all is what it took"
