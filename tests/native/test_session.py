"""A process of a limited container gets CUDA with a valid session only; all else fails closed."""

import contextlib
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from native import build
from native.container import REFUSED, SLOTS, WAITING, Container
from native.fake import Fake
from native.registrar import BAD, BUSY, OK, Registrar, frame

NOT_PERMITTED = 800
#: What a client prints: the result of cuInit, and of a call after it.
WORKS, NO_CUDA = "0 0\n", f"{NOT_PERMITTED} {NOT_PERMITTED}\n"

Made = Callable[..., Container]


def client() -> Path:
    """The program; see clients/session.c."""
    return build.client("session", "-l:libcuda.so.1")


@pytest.fixture
def surroundings(fake: Fake) -> Callable[[Container], dict[str, str]]:
    """The environment of a process of a container."""
    return lambda container: {**fake.environment(), **container.environment()}


Surroundings = Callable[[Container], dict[str, str]]


def refused(container: Container, environment: dict[str, str], *, says: str) -> None:
    """A process of the container gets no CUDA, and says once why."""
    done = build.run(client(), "init", environment=environment)
    assert done.stdout == NO_CUDA
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("alnair-vgpu: no CUDA in this container: ")
    assert says in lines[0]
    assert not container.slots()


@contextlib.contextmanager
def holding(environment: dict[str, str], *words: object) -> Iterator["subprocess.Popen[str]"]:
    """A process that has said its first line and stays."""
    process = build.start(client(), *words, environment=environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: "subprocess.Popen[str]") -> str:
    """Its next line."""
    assert process.stdout
    return process.stdout.readline()


# ---- registration --------------------------------------------------------------------------------


def test_a_process_of_a_registered_container_gets_a_slot(
    container: Made, surroundings: Surroundings
) -> None:
    made = container()
    with holding(surroundings(made), "hold") as process:
        assert said(process) == WORKS
        (slot,) = made.slots()
        started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        assert (slot.owner, slot.started) == (process.pid, int(started))


def test_without_a_folder_nothing_is_limited(fake: Fake) -> None:
    environment = {**fake.environment(), "LD_PRELOAD": str(build.INTERPOSER)}
    done = build.run(client(), "init", environment=environment)
    assert (done.stdout, done.stderr) == (WORKS, "")


def test_the_first_process_registers_and_the_next_only_map(
    container: Made, surroundings: Surroundings
) -> None:
    made = container(state=WAITING)
    with Registrar(made, OK) as server:
        with (
            holding(surroundings(made), "hold") as first,
            holding(surroundings(made), "hold") as second,
        ):
            assert said(first) == said(second) == WORKS
            (request,) = server.requests
        assert (request.operation, request.abi) == (1, 1)
        assert request.pid in {first.pid, second.pid}
        assert request.driver_version == 13050


def test_a_storm_registers_once(container: Made, surroundings: Surroundings) -> None:
    made = container(state=WAITING)
    with Registrar(made, OK) as server, holding(surroundings(made), "crowd", 24) as crowd:
        assert said(crowd) == "24\n"
        assert len(server.requests) == 1
        assert len(made.slots()) == 24


def test_a_busy_or_vanishing_server_is_asked_again(
    container: Made, surroundings: Surroundings
) -> None:
    made = container(state=WAITING)
    with Registrar(made, BUSY, None, OK) as server:
        done = build.run(client(), "init", environment=surroundings(made))
        assert (done.stdout, done.stderr) == (WORKS, "")
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (1, "this pod has no GPU"),
        (BAD, "this pod has no GPU"),
        (frame(OK)[:100], "no answer of this version"),
        (frame(OK) + b"more", "not registered within"),
        (frame(OK, magic=1), "no answer of this version"),
        (frame(OK, abi=2), "no answer of this version"),
    ],
    ids=["refused", "bad", "short", "unpublished", "magic", "abi"],
)
def test_any_other_answer_refuses(
    container: Made, surroundings: Surroundings, answer: int | bytes, says: str
) -> None:
    # Who is answered hears it at once; less than the library waits before it says so.
    deadline = 200 if says == "not registered within" else 2900
    made = container(state=WAITING, deadline_ms=deadline)
    with Registrar(made, answer, answer, text="this pod has no GPU"):
        refused(made, surroundings(made), says=says)


@pytest.mark.parametrize("listens", [False, True], ids=["no server", "a server that never answers"])
def test_registration_ends_at_the_deadline(
    container: Made, surroundings: Surroundings, listens: bool
) -> None:
    made = container(state=WAITING, deadline_ms=300)
    with Registrar(made) if listens else contextlib.nullcontext():
        begun = time.monotonic()
        refused(made, surroundings(made), says="not registered within 300 ms")
        # And not after the longest that there is, a minute.
        assert 0.3 <= time.monotonic() - begun < 30


def test_a_program_waits_for_an_agent_that_is_away_and_says_so(
    container: Made, surroundings: Surroundings
) -> None:
    made = container(state=WAITING, deadline_ms=30_000)
    with build.start(client(), "init", environment=surroundings(made)) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == (
            "alnair-vgpu: waiting for the Alnair agent of this node, at most 30000 ms "
            "(socket: No such file or directory)\n"
        )
        with Registrar(made, OK):
            assert process.communicate(timeout=30) == (WORKS, "")


def test_the_next_process_takes_over_from_a_registrar_that_was_killed(
    container: Made, surroundings: Surroundings
) -> None:
    made = container(state=WAITING, deadline_ms=5000)
    with Registrar(made):
        with holding(surroundings(made), "hold"):
            until(lambda: made.counters.registrar != 0)
        assert made.counters.registrar
    (made.folder / "socket").unlink()
    with Registrar(made, OK):
        assert build.checked(client(), "init", environment=surroundings(made)) == WORKS
    assert not made.counters.registrar


def test_the_servers_refusal_is_told_in_its_words_on_one_line(
    container: Made, surroundings: Surroundings
) -> None:
    made = container(state=REFUSED)
    made.limits.message = b"evicted:\nover its limit\x1b[31m"
    refused(made, surroundings(made), says="evicted: over its limit [31m")


def test_an_unknown_state_refuses(container: Made, surroundings: Surroundings) -> None:
    made = container(state=7)
    refused(made, surroundings(made), says="refused")


# ---- pages ---------------------------------------------------------------------------------------


def truncated(name: str, size: int) -> Callable[[Container], None]:
    return lambda made: os.truncate(made.folder / name, size)


def field(page: str, name: str, value: int) -> Callable[[Container], None]:
    return lambda made: setattr(getattr(made, page), name, value)


def removed(name: str) -> Callable[[Container], None]:
    return lambda made: (made.folder / name).unlink()


def linked(name: str) -> Callable[[Container], None]:
    def damage(made: Container) -> None:
        (made.folder / name).rename(made.folder / "elsewhere")
        (made.folder / name).symlink_to("elsewhere")

    return damage


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (removed("limits"), "limits: No such file"),
        (removed("counters"), "counters: No such file"),
        (linked("limits"), "limits: Too many levels"),
        (truncated("limits", 4095), "limits: it has a wrong size"),
        (truncated("limits", 0), "limits: it has a wrong size"),
        (field("limits", "magic", 0), "limits: it is not a limits page"),
        (field("limits", "abi", 2), "limits: it is of another version"),
        (field("limits", "n_devices", 17), "limits: it names more GPUs"),
        (lambda made: made.change(compute_percent=101), "limits: it has a compute limit"),
        (truncated("counters", 4096), "counters: it has a wrong size"),
        (truncated("counters", 4096 * 300), "counters: it has a wrong size"),
        (field("counters", "magic", 0), "counters: it is not a counters file"),
        (field("counters", "abi", 2), "counters: it is of another version"),
        (field("counters", "n_slots", 8), "counters: it is of another version"),
        (field("counters", "generation", 9), "counters: it is not the one"),
    ],
)
def test_a_bad_page_refuses(
    container: Made, surroundings: Surroundings, damage: Callable[[Container], None], says: str
) -> None:
    made = container()
    damage(made)
    done = build.run(client(), "init", environment=surroundings(made))
    assert done.stdout == NO_CUDA
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


def test_a_gpu_is_found_by_its_uuid_whatever_its_number() -> None:
    with Fake(gpus=3) as three, Container(*map(three.uuid, (2, 0, 1))) as made:
        for visible, row in (("0", 0), ("1", 1), ("2", 2), ("2,0", 2), (f"GPU-{three.uuid(1)}", 2)):
            environment = {**three.environment(), **made.environment()}
            with holding({**environment, "CUDA_VISIBLE_DEVICES": visible}, "hold") as process:
                assert said(process) == WORKS
                held = [made.total("contexts", each) for each in range(3)]
                assert held == [int(each == row) for each in range(3)]
            three.sweep()
            for slot in made.slots():
                slot.owner = 0
                for each in range(3):
                    slot.device[each].contexts = 0


def test_memory_counts_on_the_gpu_that_is_current_in_the_calling_thread() -> None:
    with Fake(gpus=2) as two, Container(two.uuid(1), two.uuid(0)) as made:
        made.change(0, memory_limit=8 << 30, context_bytes=600 << 20)
        made.change(1, memory_limit=8 << 30, context_bytes=600 << 20)
        chosen = {"CUDA_VISIBLE_DEVICES": "1,0"}  # so that no GPU's number is that of its row
        environment = {**two.environment(), **made.environment(), **chosen}
        with holding(environment, "contexts") as process:
            assert said(process) == "0\n"
            assert made.total("held", 1) == (600 + 2 + 16 + 8) << 20  # the first GPU
            assert made.total("held", 0) == (600 + 4 + 32) << 20


# ---- processes -----------------------------------------------------------------------------------


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for it."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.001)


def test_threads_that_race_in_cuinit_share_one_slot(
    container: Made, surroundings: Surroundings
) -> None:
    for state in (WAITING, None):
        made = container(state=state) if state else container()
        with Registrar(made, OK) if state else contextlib.nullcontext():
            said = build.checked(client(), "race", 32, environment=surroundings(made))
        assert said == "32\n"
        assert made.counters.slots_used == 1


def test_a_child_has_its_own_slot_and_one_without_cuda_has_none(
    container: Made, surroundings: Surroundings
) -> None:
    made = container()
    with holding(surroundings(made), "fork") as process:
        assert said(process) == WORKS
        idle, busy = map(int, said(process).split())
        until(lambda: len(made.slots()) == 2)
        assert {slot.owner for slot in made.slots()} == {process.pid, busy}
        assert idle not in {slot.owner for slot in made.slots()}


def test_after_execve_the_memory_of_the_program_before_counts_no_longer(
    container: Made, surroundings: Surroundings
) -> None:
    made = container()
    with holding(surroundings(made), "again") as process:
        assert said(process) == said(process) == WORKS
        (slot,) = made.slots()
        assert slot.owner == process.pid
        assert slot.device[0].contexts == 1


def test_more_processes_than_slots_fail_with_a_clear_line(
    container: Made, surroundings: Surroundings
) -> None:
    made = container()
    with holding(surroundings(made), "crowd", SLOTS + 44) as crowd:
        assert said(crowd) == f"{SLOTS}\n"
        assert len(made.slots()) == SLOTS
        crowd.kill()
        _, error = crowd.communicate()
    assert error.count("\n") == 44
    assert error.splitlines()[0] == (
        "alnair-vgpu: no CUDA in this process: 256 processes of this container use it already"
    )
    until(lambda: not any(Path(f"/proc/{slot.owner}").exists() for slot in made.slots()))
    assert build.checked(client(), "init", environment=surroundings(made)) == WORKS
    assert len(made.slots()) == 1, "the slots of the dead were freed"


def test_a_slot_whose_pid_came_again_is_freed(container: Made, surroundings: Surroundings) -> None:
    made = container()
    stale = made.counters.slot[0]
    stale.owner, stale.started = os.getpid(), 1  # alive, but started later
    stale.device[0].held = 1 << 30
    made.counters.slots_used = 1
    for slot in made.counters.slot[1:]:  # so that all slots are asked for
        slot.owner = 1
    made.counters.slots_used = SLOTS
    assert build.checked(client(), "init", environment=surroundings(made)) == WORKS
    assert stale.device[0].held < 1 << 30


def fill_but(made: Container, index: int) -> None:
    """Let nobody find a free slot, so that they ask who is dead."""
    for at, slot in enumerate(made.counters.slot):
        if at != index:
            slot.owner = os.getpid()
    made.counters.slots_used = SLOTS


def test_a_dead_process_that_nobody_waited_for_is_dead(
    container: Made, surroundings: Surroundings
) -> None:
    made = container()
    with holding(surroundings(made), "orphan") as process:
        child, result = map(int, said(process).split())
        assert result == 0
        assert made.counters.slot[0].owner == child
        fill_but(made, 0)
        assert build.checked(client(), "init", environment=surroundings(made)) == WORKS
        assert made.counters.slot[0].owner != child


def test_a_process_whose_first_thread_ended_is_alive(
    container: Made, surroundings: Surroundings
) -> None:
    made = container()
    with holding(surroundings(made), "leaderless") as process:
        assert said(process) == "0\n"
        status = Path(f"/proc/{process.pid}/stat")
        until(lambda: status.read_text().rpartition(")")[2].split()[0] == "Z")
        fill_but(made, 0)
        done = build.run(client(), "init", environment=surroundings(made))
        assert "256 processes" in done.stderr
        assert made.counters.slot[0].owner == process.pid


def test_a_process_of_another_pid_namespace_is_left_to_the_server(
    container: Made, surroundings: Surroundings
) -> None:
    made = container()
    fill_but(made, 0)
    foreign = made.counters.slot[0]
    foreign.owner, foreign.started, foreign.pid_namespace = 1 << 22, 1, 1
    done = build.run(client(), "init", environment=surroundings(made))
    assert "256 processes" in done.stderr
    assert foreign.owner == 1 << 22


def test_a_process_out_of_descriptors_may_try_again(
    container: Made, surroundings: Surroundings
) -> None:
    made = container()
    done = build.run(client(), "few", environment=surroundings(made))
    assert done.stdout == f"{NOT_PERMITTED} 0\n"
    assert "Too many open files" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_living_keep_their_slots(container: Made, surroundings: Surroundings) -> None:
    made = container()
    for slot in made.counters.slot:
        slot.owner = os.getpid()
    made.counters.slots_used = SLOTS
    done = build.run(client(), "init", environment=surroundings(made))
    assert done.stdout.startswith(f"{NOT_PERMITTED} ")
    assert "256 processes" in done.stderr


def test_a_process_whose_slot_was_wiped_ends_with_cuda(
    container: Made, surroundings: Surroundings
) -> None:
    # The server makes forged counters anew, and what this process holds is lost with them.
    made = container()
    with holding(surroundings(made), "step") as process:
        assert said(process) == WORKS
        assert process.stdin
        results = []
        for _ in range(3):
            print("go", file=process.stdin, flush=True)
            results.append(said(process))
            made.counters.slot[0].owner = 0
        # The call that finds it out may still be served.
        assert (results[0], results[2]) == ("0\n", f"{NOT_PERMITTED}\n")
        _, error = process.communicate()
    assert error.count("\n") == 1
    assert "made the counters anew" in error


def test_nothing_of_the_process_is_touched(container: Made, surroundings: Surroundings) -> None:
    made = container(state=WAITING)
    with Registrar(made, OK):
        done = build.run(client(), "untouched", environment=surroundings(made))
    plain = {k: v for k, v in surroundings(made).items() if k != "LD_PRELOAD"}
    assert done.stdout == build.checked(client(), "untouched", environment=plain) == "0 the same\n"
    assert done.stderr == ""


def test_a_kill_anywhere_in_cuinit_leaves_a_container_that_works(
    container: Made, surroundings: Surroundings
) -> None:
    choose = random.Random(6)
    for _ in range(60 * int(os.environ.get("ALNAIR_SOAK", "1"))):
        made = container(state=WAITING, deadline_ms=5000)
        with Registrar(made, OK, OK, OK):
            build.run(client(), "kill", choose.randrange(1500), environment=surroundings(made))
            assert build.checked(client(), "init", environment=surroundings(made)) == WORKS
        made.close()


def test_no_variable_switches_limits_off(container: Made, surroundings: Surroundings) -> None:
    made = container(state=REFUSED)
    hidden = made.folder.parent / f"{made.folder.name}-other"
    commands = (
        "mount -t tmpfs none /run && mkdir -p /run/alnair/vgpu"
        f" && cp {made.folder}/limits {made.folder}/counters /run/alnair/vgpu/"
        f" && exec {client()} init"
    )
    for elsewhere in (str(hidden), "", "/"):
        environment = {**surroundings(made), "ALNAIR_VGPU_DIR": elsewhere}
        preload = build.preload(environment.pop("LD_PRELOAD"))
        run = commands.replace(
            "exec ", f"exec env LD_PRELOAD='{preload}' ASAN_OPTIONS=detect_leaks=0 "
        )
        done = build.run("unshare", "-m", "sh", "-c", run, environment=environment)
        if "unshare" in done.stderr:
            pytest.skip("no mount namespace can be made here")
        assert done.stdout == NO_CUDA, done.stderr


def test_a_program_sees_as_many_sms_as_it_was_given(
    fake: Fake, container: Made, surroundings: Surroundings
) -> None:
    seen = {}
    for given in (0, 40, 10_000):
        made = container(sm_count=given)
        seen[given] = int(build.checked(client(), "sms", environment=surroundings(made)))
    plain = int(build.checked(client(), "sms", environment=fake.environment()))
    assert seen == {0: plain, 40: 40, 10_000: plain}
