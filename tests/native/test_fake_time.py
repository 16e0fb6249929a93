"""The fake GPU's time: streams, events, slices, MPS, and a virtual clock over several processes."""

import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from native.fake import Fake
from native.timing import PLAIN, begin, finish, script

NOT_READY = "600"


@pytest.fixture
def quiet() -> Iterator[Fake]:
    """One GPU whose costs are plain numbers."""
    with Fake(**PLAIN) as fake:
        yield fake


# ---- streams and events -------------------------------------------------------------------------


def test_a_stream_runs_in_order_and_events_tell_when(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; event a; event b; event c; record a s; launch s ns_100000 3; record b s;
        launch s ns_50000; record c s; sync s; elapsed a b; elapsed b c
        """,
    )
    # A mark costs 1 us, and its time is that of its end.
    assert lines == ["301.0", "51.0"]
    assert quiet.kernels() == 4
    assert quiet.work_ns() == 350_000


def test_work_that_is_not_done_is_not_ready(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; event a; event b; ? equery a; record a s; launch s ns_100000; record b s;
        ? query s; ? equery b; ? elapsed a b; sleep 60000; ? query s; esync b; ? equery b; ?
        query s; elapsed a b
        """,
    )
    assert lines == ["0", NOT_READY, NOT_READY, NOT_READY, NOT_READY, "0", "0", "101.0"]


def test_events_without_times_and_without_records_have_no_elapsed_time(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; event a 2; event b; event c; record a s; record b s; sync s; ? elapsed a
        b; ? elapsed b c; ? event d 4
        """,
    )
    assert lines == ["400", "400", "1"]


def test_streams_share_the_gpu_and_wait_for_events(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s 1; stream t 1; event a; event b; event z; record z s; launch s ns_1000000;
        record a s; wait t a; launch t ns_500000; record b t; sync t; elapsed z b
        """,
    )
    assert float(lines[0]) == pytest.approx(1502, abs=1)


def test_kernels_that_leave_room_run_at_once() -> None:
    text = "stream s 1; stream t 1; launch s ns_1000000{0}; launch t ns_1000000{0}; sync; time"
    found = []
    for kind in ("", "_sm60"):
        with Fake("h200", **PLAIN) as fake:
            lines = script(fake, text.format(kind))
            found.append(int(lines[0]))
    assert found[0] == pytest.approx(2_000_000, rel=0.01)
    assert found[1] == pytest.approx(1_000_000, rel=0.01)


def test_green_contexts_have_a_part_of_the_gpu(quiet: Fake) -> None:
    lines = script(quiet, "green s 64; launch s ns_1000000; sync s; time")
    assert int(lines[0]) == pytest.approx(1_000_000 * 132 / 64, rel=0.03)


def test_urgent_streams_go_first(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream low 1 0; stream high 1 -5; launch low ns_1000000 5; sleep 100000; event a;
        launch high ns_200000; sync high; time; sync low; time
        """,
    )
    assert int(lines[0]) < 400_000
    assert int(lines[1]) > 5_200_000


@pytest.mark.parametrize(("kind", "end"), [("0", 3_000_000), ("1", 2_000_000)])
def test_the_legacy_stream_waits_for_blocking_streams_and_they_for_it(
    quiet: Fake, kind: str, end: int
) -> None:
    # Copies would overlap kernels, were they not ordered.
    lines = script(
        quiet,
        f"""
        stream s {kind}; stream t {kind}; event a; event z; record z s; launch s ns_1000000;
        copy 0 25000000; launch t ns_1000000; record a t; sync; elapsed z a
        """,
    )
    assert float(lines[0]) * 1000 == pytest.approx(end, rel=0.01)


def test_per_thread_streams_are_not_the_legacy_one(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s 1; launch s ns_1000000; pt_launch ns_1000; ? query pt; sync pt; time; ?
        query s; thread launch pt ns_1000, sync pt; join
        """,
    )
    assert lines[0] == NOT_READY
    assert len(lines) == 3


def test_a_full_queue_blocks_the_host(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; launch s ns_1000000 1024; time; launch s ns_1000000 10; time
        """,
    )
    assert int(lines[0]) < 3_000_000
    assert int(lines[1]) == pytest.approx(10_000_000, rel=0.01)


def test_host_functions_run_in_their_place(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; host s a; launch s ns_1000000; host s b; launch s ns_1000000; host s c;
        sync s; order; time
        """,
    )
    assert lines[0] == "abc"
    assert int(lines[1]) == pytest.approx(2_000_000, rel=0.02)


def test_stale_and_foreign_handles_are_refused(quiet: Fake) -> None:
    lines = script(
        quiet,
        """
        stream s; destroy s; ? sync s; ? record nothing 0; ? launch 0 unknown_name; ?
        destroy 0
        """,
    )
    assert lines == ["400", "400", "500", "400"]


# ---- sharing between processes ------------------------------------------------------------------


def test_two_processes_share_in_slices() -> None:
    with Fake(**{**PLAIN, "start_threads": 2}) as fake:
        busy = """
        stream s; event a; event b; record a s; launch s ns_10000000 10; record b s; sync s;
        elapsed a b
        """
        (first,), (second,) = finish(*(begin(fake, busy, tag=tag) for tag in "ab"))
        # Events see the slices of others; the oracle does not.
        assert float(first) == pytest.approx(200_000, rel=0.03)
        assert float(second) == pytest.approx(200_000, rel=0.03)
        assert fake.work_ns("a") == fake.work_ns("b") == 100_000_000


def test_who_waits_between_kernels_waits_for_slices_too() -> None:
    with Fake(**{**PLAIN, "start_threads": 2}) as fake:
        polite = "stream s;" + "launch s ns_100000; sync s;" * 20 + "time"
        greedy = begin(fake, "stream s; launch s ns_1000000 100; sync s", tag="b")
        (_, (took,)) = finish(greedy, begin(fake, polite, tag="a"))
        # Each 0.1 ms kernel waits for a slice of 2 ms.
        assert int(took) == pytest.approx(20 * 2_100_000, rel=0.1)


def test_with_mps_processes_run_at_once_on_their_parts() -> None:
    with Fake(**{**PLAIN, "start_threads": 2, "mode": "mps"}) as fake:
        busy = "stream s; launch s ns_1000000 30; sync s; time"
        quarter = begin(fake, busy, tag="a", CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="25")
        half = begin(fake, busy, tag="b", CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="50")
        (slow,), (fast,) = finish(quarter, half)
        assert int(slow) == pytest.approx(120_000_000, rel=0.01)
        assert int(fast) == pytest.approx(60_000_000, rel=0.01)
        assert fake.work_ns("a") == pytest.approx(30_000_000, rel=0.001)


def test_contention_slows_mps_neighbours() -> None:
    with Fake(**{**PLAIN, "start_threads": 2, "mode": "mps", "contention": 20}) as fake:
        busy = "stream s; launch s ns_1000000 30; sync s; time"
        half = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"}
        (first,), (second,) = finish(*(begin(fake, busy, tag=tag, **half) for tag in "ab"))
        assert int(first) == pytest.approx(72_000_000, rel=0.01)
        assert int(second) == pytest.approx(72_000_000, rel=0.01)


def test_jitter_and_two_modes_are_the_same_in_each_run() -> None:
    works = []
    for seed in (1, 1, 2):
        with Fake(**{**PLAIN, "seed": seed}) as fake:
            script(
                fake,
                """
        stream s; launch s ns_100000_j20 500; launch s bi_4000_400000_25 1000; sync s
        """,
            )
            works.append(fake.work_ns())
    assert works[0] == works[1] != works[2]
    assert works[0] == pytest.approx(500 * 100_000 + 1000 * (0.75 * 4000 + 0.25 * 400_000), rel=0.1)


# ---- the virtual clock --------------------------------------------------------------------------


def test_two_processes_see_the_same_times_in_each_run() -> None:
    def once() -> list[list[str]]:
        with Fake(clock="virtual", start_threads=2, seed=7) as fake:
            tiny = "stream s" + "; launch s ns_4000_j20 50; sync s; time" * 20
            mixed = (
                "stream s"
                + "; launch s bi_4000_400000_25 20; ? query s; sleep 30000; time" * 20
                + "; sync s; time"
            )
            return finish(begin(fake, tiny, tag="a"), begin(fake, mixed, tag="b"))

    assert once() == once() == once()


def test_what_processes_do_outside_of_the_gpu_is_in_one_order_too(tmp_path: Path) -> None:
    def once(run: int) -> str:
        seen = tmp_path / str(run)
        with Fake(clock="virtual", start_threads=3, seed=7) as fake:
            turns = [
                f"append {seen} a; launch s ns_4000_j20; sync s;" * 50,
                f"append {seen} b; launch s ns_3000_j20; ? query s;" * 50,
                f"append {seen} c; sleep 10000;" * 50,
            ]
            finish(
                *(
                    begin(fake, "stream s;" + turn + "time", tag=tag)
                    for tag, turn in zip("abc", turns, strict=True)
                )
            )
        return seen.read_text()

    first = once(1)
    assert len(first) == 150
    assert once(2) == once(3) == first


def test_virtual_minutes_take_seconds() -> None:
    with Fake(**PLAIN) as fake:
        began = time.monotonic()
        script(fake, "stream s; launch s ns_1000000 300000; sync s")
        assert fake.work_ns() == 300_000_000_000
        assert time.monotonic() - began < 100


def test_a_thread_of_the_test_takes_part_in_virtual_time(quiet: Fake) -> None:
    quiet.join()
    begun = quiet.now_ns()
    client = begin(quiet, "stream s; launch s ns_1000000 100; sync s; time")
    for tick in range(1, 11):
        quiet.sleep_until_ns(begun + tick * 50_000_000)
        assert quiet.now_ns() - begun == pytest.approx(tick * 50_000_000, abs=1000)
    quiet.leave()
    finish(client)


def test_a_killed_process_does_not_stop_the_clock(quiet: Fake) -> None:
    for work in ("launch s ns_1000000 5000", "launch s ns_1000000000 100; sync s"):
        victim = begin(quiet, f"stream s; say ready; {work}; read", tag="victim")
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        victim.send_signal(signal.SIGKILL)
        lines = script(quiet, "stream s; launch s ns_1000000 10; sync s; time")
        assert int(lines[0]) >= 10_000_000
        victim.communicate()
    quiet.sweep()
    before = quiet.work_ns("victim")
    script(quiet, "stream s; launch s ns_1000000 10; sync s")
    assert quiet.work_ns("victim") == before


def test_threads_of_a_process_have_their_own_times(quiet: Fake) -> None:
    work = ", ".join(["launch pt ns_4000, malloc, sync pt"] * 40)
    lines = script(quiet, f"thread {work}; thread {work}; thread {work}; join; time")
    assert quiet.kernels() == 120
    # They wait for each other's kernels (120 of 4 us), not for each other's calls.
    assert 450_000 <= int(lines[0]) < 1_500_000


@pytest.mark.parametrize("clock", ["virtual", "wall"])
def test_kills_at_any_point_leave_the_gpu_to_others(clock: str) -> None:
    work = """
    launch s ns_1000_j20 30; record e s; wait t e; host t z; launch t ns_3000 5; glaunch x s;
    copy s 1000; sync t; ? query s; sleep 1000; sync;
    """
    text = "stream s; stream t 1; event e; capture s; launch s ns_1000 3; end s g; instantiate g x;"
    with Fake(clock=clock) as fake:
        alive = []
        for turn in range(30):
            alive.append(begin(fake, text + work * 200 + "read", tag="victim"))
            time.sleep(0.001 * (turn * 7 % 20))
            if len(alive) > 3:
                victim = alive.pop(turn * 5 % 3)
                victim.kill()
                victim.communicate()
        for victim in alive:
            victim.kill()
            victim.communicate()
        fake.sweep()
        script(fake, "stream s; launch s ns_1000000 20; sync s", tag="other")
        assert fake.work_ns("other") == 20_000_000
        assert fake.used("victim") == 0


def test_a_thread_that_blocks_elsewhere_does_not_stop_the_clock_for_long(quiet: Fake) -> None:
    sleeper = begin(quiet, "say ready; read; launch 0 ns_1000; sync", tag="b")
    assert sleeper.stdout is not None
    assert sleeper.stdout.readline() == "ready\n"
    lines = script(quiet, "stream s; launch s ns_1000000 10; sync s; time")
    assert int(lines[0]) >= 10_000_000
    sleeper.communicate("\n", timeout=20)
    assert sleeper.returncode == 0


# ---- the wall clock -----------------------------------------------------------------------------


def test_kernels_take_real_time_and_no_cpu() -> None:
    with Fake(clock="wall") as fake:
        began, cpu = time.monotonic(), resource_seconds()
        lines = script(
            fake, "stream s; event a; event b; record a s; launch s ns_50000000 20; "
            "record b s; sync s; elapsed a b"
        )  # fmt: skip
        assert time.monotonic() - began >= 1
        assert 1_000_000 <= float(lines[0]) < 30_000_000, "longer where this machine stood still"
        assert resource_seconds() - cpu < 0.5


def resource_seconds() -> float:
    """CPU time of ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_wall_time_is_shared_in_slices_and_scaled() -> None:
    with Fake(clock="wall", scale=0.5) as fake:
        busy = "say ready; read; stream s; launch s ns_10000000 40; sync s; time"
        clients = [begin(fake, busy, tag=tag) for tag in "ab"]
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n"
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("\n")
            client.stdin.flush()
        (first,), (second,) = finish(*clients)
        assert fake.work_ns("a") == fake.work_ns("b") == 200_000_000
        # Alone each would take 0.2 s. They begin nearly at once, so that each waits for the other.
        assert max(int(first), int(second)) > 300_000_000


def test_host_functions_and_waits_work_in_wall_time() -> None:
    with Fake(clock="wall") as fake:
        lines = script(
            fake,
            """
        stream s; stream t; event e; host s a; launch s ns_1000000; host s b; record e s;
        wait t e; host t c; launch t ns_1000000; sync t; order; time
        """,
        )
        assert lines[0] == "abc"
        assert int(lines[1]) >= 2_000_000


def test_a_killed_process_gives_its_slices_back_in_wall_time() -> None:
    with Fake(clock="wall") as fake:
        victim = begin(fake, "stream s; launch s ns_1000000000 100; say ready; sync s", tag="v")
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        victim.kill()
        victim.communicate()
        script(fake, "stream s; sleep 50000000; launch s ns_1000000 10; sync s")
        before = fake.work_ns("v")
        script(fake, "stream s; launch s ns_1000000 50; sync s")
        assert fake.work_ns("v") == before
