"""The fake GPU's bytes: paths take and return what the model says; no race or kill loses any."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from native import build
from native.fake import Fake

MIB = 1 << 20
CONTEXT = 522 * MIB  # of an H200, in profiles/h200
OK, INVALID, OUT_OF_MEMORY, NOT_INITIALIZED, UNKNOWN = 0, 1, 2, 3, 999


class Shell:
    """A client that does what it is told (clients/memory_shell.c)."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def __call__(self, line: str) -> tuple[int, int]:
        """(CUresult, value) of a command."""
        result, value = self.text(line).split()
        return int(result), int(value)

    def text(self, line: str) -> str:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def ok(self, *lines: str) -> int:
        """All succeed; the last one's value."""
        value = 0
        for line in lines:
            result, value = self(line)
            assert result == OK, f"{line}: {result}"
        return value


@pytest.fixture
def shell(fake: Fake) -> Iterator[Callable[..., Shell]]:
    """Starts shells."""
    with ExitStack() as stack:

        def start(tag: str = "a", machine: Fake = fake, **environment: str) -> Shell:
            program = build.client("memory_shell", "-l:libcuda.so.1")
            found = machine.environment(tag, **environment)
            process = stack.enter_context(build.start(program, environment=found))
            stack.callback(process.kill)
            return Shell(process)

        yield start


@pytest.mark.parametrize(
    ("take", "give", "blocks"),  # a block: 2 MiB
    [
        ("alloc x 1", "free x", 1),
        ("alloc x 1048576", "free x", 1),
        ("alloc x 1048577", "free x", 1),
        ("alloc x 2097153", "free x", 2),
        ("alloc x 107374182400", "free x", 51200),
        ("alloc x 1000", "afree x", 1),
        ("pitch x 4000 1000", "free x", 2),  # 4096 * 1000 = 3.9 MiB
        ("managed x 5000", "free x", 1),
        ("managed x 2097153", "free x", 2),
        ("array x 1000 0 0", "adestroy x", 1),
        ("array x 256 512 1", "adestroy x", 1),  # 256 * 16 * 512 = 2 MiB
        ("array x 257 512 1", "adestroy x", 2),
        ("array x 256 512 3", "adestroy x", 3),
        ("mipmap x 256 512 1", "mdestroy x", 1),
        ("mipmap x 256 512 9", "mdestroy x", 2),  # levels add a third
        ("physical x 4194304 0 0", "drop x", 2),
        ("hostphysical x 4194304", "drop x", 0),
        ("async x 1000", "afree x", 16),
        ("async x 1000", "free x", 16),
        ("async x 33554433", "afree x", 32),
        ("module x 2097152", "unload x", 1),
        ("module x 4190209", "unload x", 2),  # pages of 4 KiB
        ("library x 4190209", "lunload x", 2),
        ("green x 0 8", "ungreen x", 1),
        ("create x 0", "destroy x", CONTEXT // MIB // 2),
        ("host x 10000000", "hfree x", 0),
        ("limit x 2 1073741824", "limit x 2 0", 508),
    ],
)
def test_each_path_takes_whole_blocks_and_gives_them_back(
    fake: Fake, shell: Callable[..., Shell], take: str, give: str, blocks: int
) -> None:
    client = shell()
    client.ok("retain c 0")
    assert fake.used() == CONTEXT
    client.ok(take)
    assert fake.used() == CONTEXT + blocks * 2 * MIB
    client.ok(give, "sync")
    assert fake.used() == CONTEXT
    client.ok("release c 0")
    assert fake.used() == 0
    assert fake.peak() == CONTEXT + blocks * 2 * MIB


def test_small_allocations_share_a_block_until_the_last_is_freed(
    fake: Fake, shell: Callable[..., Shell]
) -> None:
    client = shell()
    client.ok("retain c 0", *(f"alloc s{i} 512" for i in range(4096)))
    assert fake.used() == CONTEXT + 2 * MIB
    client.ok("alloc more 1")
    assert fake.used() == CONTEXT + 4 * MIB
    client.ok(*(f"free s{i}" for i in range(4095)))
    assert fake.used() == CONTEXT + 4 * MIB
    client.ok("free s4095", "free more")
    assert fake.used() == CONTEXT


def test_physical_memory_lives_while_held_mapped_or_exported(
    fake: Fake, shell: Callable[..., Shell]
) -> None:
    client = shell()
    client.ok("reserve va 8388608", "physical h 4194304 0 1", "map va h 4194304 0")
    held = 4 * MIB
    client.ok("drop h")
    assert fake.used() == held, "a mapping holds it"
    client.ok("handle again va", "unmap va 4194304")
    assert fake.used() == held, "a retained handle holds it"
    fd = client.ok("export fd again")
    client.ok("drop again")
    assert fake.used() == held, "a descriptor holds it"
    other = shell("b")
    other.ok(f"import mine {client.process.pid} {fd}")
    client.ok("close fd")
    assert fake.used() == held, "another process's handle holds it"
    assert fake.used("b") == 0, "and it is charged to who made it"
    client.process.kill()
    client.process.wait()
    assert fake.used() == held
    other.ok("drop mine")
    assert fake.used() == 0


def test_physical_memory_lives_while_bound_to_an_array_or_a_multicast_object(
    fake: Fake, shell: Callable[..., Shell]
) -> None:
    client = shell()
    client.ok("retain c 0", "sparse s 1024 1024", "physical h 4194304 0 0", "amap s h 0")
    client.ok("amap s h 64", "drop h", "aunmap s - 0")
    assert fake.used() == CONTEXT + 4 * MIB
    client.ok("aunmap s - 64")
    assert fake.used() == CONTEXT
    assert client("aunmap s - 64")[0] == INVALID
    client.ok("physical h 4194304 0 0", "amap s h 0", "drop h", "adestroy s")
    assert fake.used() == CONTEXT, "it goes with the array"
    client.ok("multicast m 8388608", "physical h 4194304 0 0", "bind m h 4194304", "drop h")
    assert fake.used() == CONTEXT + 4 * MIB
    client.ok("unbind m 4194304")
    assert fake.used() == CONTEXT
    client.ok("physical h 4194304 0 0", "bind m h 4194304", "drop h", "drop m")
    assert fake.used() == CONTEXT, "it goes with the object"


def test_an_exported_descriptor_ends_with_its_process(
    fake: Fake, shell: Callable[..., Shell]
) -> None:
    client = shell()
    client.ok("physical h 4194304 0 1", "export fd h", "drop h")
    assert fake.used() == 4 * MIB
    client.process.kill()
    client.process.wait()
    assert fake.used() == 0


def test_ipc_memory_is_the_exporters_until_the_importer_lets_go(
    fake: Fake, shell: Callable[..., Shell]
) -> None:
    client, other = shell(), shell("b")
    client.ok("retain c 0", "alloc x 4000000", "alloc small 100")
    handles = [client.text(f"ipc {name}").split()[1] for name in ("x", "small")]
    other.ok("retain c 0", *(f"open y{i} {handle}" for i, handle in enumerate(handles)))
    client.ok("free x", "free small")
    assert fake.used() == CONTEXT + 6 * MIB
    assert fake.used("b") == CONTEXT
    other.ok("ipcclose y0", "ipcclose y1")
    assert fake.used() == CONTEXT
    assert client(f"open z {handles[0]}")[0] != OK, "gone"


def test_pools_keep_what_is_freed_until_the_host_waits(
    fake: Fake, shell: Callable[..., Shell]
) -> None:
    client = shell()
    client.ok("retain c 0", "async a 40000000", "afree a")
    assert fake.used() == CONTEXT + 64 * MIB
    client.ok("async b 40000000", "afree b", "sync")
    assert fake.used() == CONTEXT
    client.ok("defpool p 0", f"keep p {32 * MIB}", "async a 20000000", "async b 20000000")
    reserved, used = client.ok("attribute p 5"), client.ok("attribute p 7")
    assert (reserved, used) == (64 * MIB, 20_000_256 * 2)
    client.ok("afree a", "afree b", "sync")
    assert fake.used() == CONTEXT + 32 * MIB, "the release threshold"
    client.ok("trim p 0")
    assert fake.used() == CONTEXT
    assert client.ok("attribute p 6") == 64 * MIB
    client.ok("pool u 0", "frompool d u 1000", "pdestroy u")
    assert fake.used() == CONTEXT + 32 * MIB, "a destroyed pool lives while memory of it does"
    client.ok("afree d")
    assert fake.used() == CONTEXT


def test_a_full_gpu_refuses_and_takes_free_pool_memory_back_first(
    fake: Fake, shell: Callable[..., Shell]
) -> None:
    client = shell()
    client.ok("retain c 0", "defpool p 0", f"keep p {1 << 40}", "async a 1000", "afree a", "sync")
    assert fake.used() == CONTEXT + 32 * MIB
    room = (fake.total() - CONTEXT) // (2 * MIB) * 2 * MIB
    assert client(f"alloc x {room + 1}") == (OUT_OF_MEMORY, 0)
    client.ok(f"alloc x {room}")
    assert client("alloc y 1")[0] == OUT_OF_MEMORY
    assert client.ok("info -") == fake.total() - CONTEXT - room
    client.ok("free x", "alloc y 1")


def test_a_context_takes_what_was_made_in_it_along(fake: Fake, shell: Callable[..., Shell]) -> None:
    client = shell()
    client.ok("create x 0", "alloc a 100", "alloc b 10000000", "managed m 100", "array r 64 64 2")
    client.ok("mipmap i 64 64 4", "module k 5000000", "host h 1000", "limit x 0 4096", "destroy x")
    assert fake.used() == 0
    assert client("free b")[0] != OK


def test_device_memory_has_content_and_faults_are_answered(shell: Callable[..., Shell]) -> None:
    client = shell()
    client.ok("retain c 0", "alloc a 1000", "alloc b 104857600", "fill a 1000 0 7")
    assert client.ok("read a 999") == 7
    assert client.ok("read b 104857599") == 0
    assert client("read b 104857600")[0] == INVALID
    client.ok("free a")
    assert client("free a")[0] == INVALID
    assert client("fill a 1000 0 7")[0] == INVALID
    assert client("alloc z 0")[0] == INVALID
    assert client("alloc z 18446744073709551615")[0] == OUT_OF_MEMORY
    client.ok("reserve va 4194304", "physical h 2097152 0 0", "map va h 2097152 0")
    client.ok("map va h 2097152 2097152", "fill va 10 100 9")
    assert client.ok(f"read va {2 * MIB + 105}") == 9, "one memory at two addresses"


def test_a_forked_child_cannot_use_an_initialised_driver(shell: Callable[..., Shell]) -> None:
    assert shell()("fork -") == (OK, NOT_INITIALIZED)


def test_what_a_process_held_before_exec_is_released(
    fake: Fake, shell: Callable[..., Shell]
) -> None:
    client = shell()
    client.ok("retain c 0", "exec -", "physical h 2097152 0 0")
    assert fake.used() == 2 * MIB


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("oom_at=2", "alloc x 100"),
        (f"fragment={8 * MIB}", "alloc x 10000000"),
        ("fail=cuMemAlloc_v2:1:2", "alloc x 1"),
    ],
)
def test_an_allocation_fails_on_demand(shell: Callable[..., Shell], fault: str, line: str) -> None:
    client = shell(faults=fault)
    client.ok("retain c 0")
    assert client(line)[0] == OUT_OF_MEMORY
    client.ok("alloc y 1000")


def test_a_process_dies_at_the_call_that_is_told(fake: Fake, shell: Callable[..., Shell]) -> None:
    client = shell(faults="kill=cuMemAlloc_v2:3")
    client.ok("retain c 0", "alloc a 1", "alloc b 10000000")
    assert fake.used() == CONTEXT + 12 * MIB
    assert client.text("alloc c 1") == ""
    assert client.process.wait() == -signal.SIGKILL
    assert fake.used() == 0
    assert fake.calls("cuMemAlloc_v2") == 3


def test_a_lost_gpu_answers_no_more(fake: Fake, shell: Callable[..., Shell]) -> None:
    client = shell()
    client.ok("retain c 0", "alloc a 100")
    fake.fault("lost=0")
    assert client("alloc b 100")[0] == UNKNOWN
    assert client("info -")[0] == UNKNOWN
    assert shell()("retain c 0")[0] == UNKNOWN
    fake.fault("")
    client.ok("alloc b 100")


def test_a_context_can_be_slow_to_make(shell: Callable[..., Shell]) -> None:
    begun = time.monotonic()
    shell(faults="slow_context_ms=200").ok("retain c 0")
    assert time.monotonic() - begun >= 0.2


def test_devices_are_seen_as_the_environment_says(shell: Callable[..., Shell]) -> None:
    with Fake(gpus=3) as machine:
        uuids = [f"GPU-{machine.uuid(gpu)}" for gpu in range(3)]
        for visible, gpu in [("2,0", 2), (f"{uuids[1]},0", 1), (uuids[2][:12], 2), ("1,junk", 1)]:
            client = shell("a", machine, CUDA_VISIBLE_DEVICES=visible)
            client.ok("retain c 0", "physical h 2097152 0 0")
            assert machine.used("a", gpu) == CONTEXT + 2 * MIB, visible
            client.process.kill()
            client.process.wait()
        for hidden in ("", "junk", "-1", "1,1"):
            client = shell("a", machine, CUDA_VISIBLE_DEVICES=hidden)
            assert client.process.communicate()[0] == "no driver\n", hidden


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_cost_what_a_second_model_says(fake: Fake, seed: int) -> None:
    calls = int(10_000 * float(os.environ.get("ALNAIR_SOAK", "1")))
    program = build.client("memory_model", "-l:libcuda.so.1")
    build.checked(program, calls, seed, environment=fake.environment(), timeout=600)
    assert fake.used() == 0


def test_threads_of_one_process_race_and_everything_is_given_back(fake: Fake) -> None:
    program = build.client("memory_race", "-l:libcuda.so.1")
    build.checked(program, 1.0, 7, 1024 * MIB, 8, environment=fake.environment())
    assert fake.used() == 0
    assert fake.peak() > CONTEXT


def test_32_processes_race_and_die_and_no_byte_is_lost(fake: Fake) -> None:
    seconds = 3.0 * float(os.environ.get("ALNAIR_SOAK", "1"))
    program = build.client("memory_race", "-l:libcuda.so.1")
    limit = 60_000 * MIB
    fake.watch(limit)
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                build.start(program, seconds, seed, 256 * MIB, environment=fake.environment())
            )
            for seed in range(32)
        ]
        stack.callback(lambda: [client.kill() for client in clients])
        time.sleep(seconds / 2)
        for client in clients[:16]:
            client.kill()
        outputs = [client.communicate() for client in clients]
    for client, (out, err) in zip(clients[16:], outputs[16:], strict=True):
        assert client.returncode == 0, out + err
    assert sum(int(out) for out, _ in outputs[16:]) > 1000
    assert fake.used() == 0
    assert [path.name for path in fake.state.parent.iterdir()] == ["state"], "exports are gone"
    assert fake.peak() > limit, "the race went over what is watched"
    instants, worst = fake.over()
    assert instants > 0
    assert worst == fake.peak() - limit
