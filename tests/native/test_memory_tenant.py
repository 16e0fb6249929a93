"""What a tenant sees of its memory limit: where it ends, how it shows, what a refusal costs."""

import json
import sys
from collections.abc import Iterator

import pytest

from native import build
from native.calls import BLOCK, INVALID_VALUE, MIB, OUT_OF_MEMORY, SUCCESS, Calls, Out, Var
from native.container import Container
from native.fake import Fake
from native.memory_paths import POSIX_FD
from native.test_memory_paths import CONTEXT, differences, tenant
from native.vmm_paths import properties

LIMIT = 2048 * MIB
Tenant = tuple[Fake, Container, Calls]


@pytest.fixture
def one() -> Iterator[Tenant]:
    """A container with a limit, and a process in it."""
    with (
        tenant(limit=LIMIT) as (fake, container),
        Calls({**fake.environment(), **container.environment()}) as call,
    ):
        yield fake, container, call


def test_the_boundary_is_the_same_in_100_of_100_tries(one: Tenant) -> None:
    fake, container, call = one
    room = LIMIT - CONTEXT
    found = []
    for _ in range(100):
        low, high = 0, 2 * LIMIT  # low fits, high does not
        while high - low > BLOCK:
            middle = (low + high) // 2 // BLOCK * BLOCK
            if call("cuMemAlloc_v2", Out("a"), middle) == SUCCESS:
                assert call("cuMemFree_v2", Var("a")) == SUCCESS
                low = middle
            else:
                high = middle
        found.append(low)
        assert call("cuMemAlloc_v2", Out("a"), low + 1) == OUT_OF_MEMORY
    assert found == [room] * 100
    assert fake.over() == (0, 0)
    assert differences(fake, container) == [0]


def test_a_training_loop_frees_and_goes_on_50_of_50_times(one: Tenant) -> None:
    """As PyTorch's caching allocator does: on a refusal it frees what it caches, and retries."""
    fake, _, call = one
    survived = 0
    for _ in range(50):
        cached = 0
        while call("cuMemAlloc_v2", Out(f"c{cached}"), 190 * MIB) == SUCCESS:
            cached += 1
        assert cached == (LIMIT - CONTEXT) // (190 * MIB)
        assert call("cuMemAlloc_v2", Out("next"), 700 * MIB) == OUT_OF_MEMORY
        for i in range(cached):
            assert call("cuMemFree_v2", Var(f"c{i}")) == SUCCESS
        survived += call("cuMemAlloc_v2", Out("next"), 700 * MIB) == SUCCESS
        assert call("cuMemFree_v2", Var("next")) == SUCCESS
    assert survived == 50
    assert fake.over() == (0, 0)


def test_stock_of_a_pool_gives_way_to_a_plain_allocation(one: Tenant) -> None:
    fake, _, call = one
    assert call("cuDeviceGetMemPool", Out("pool"), 0) == SUCCESS
    assert call("cuMemPoolSetAttribute", Var("pool"), 4, b"\xff" * 8) == SUCCESS
    assert call("cuMemAllocAsync", Out("a"), 1024 * MIB, 0) == SUCCESS
    assert call("cuMemFreeAsync", Var("a"), 0) == SUCCESS
    assert call("cuStreamSynchronize", 0) == SUCCESS
    assert fake.used() == CONTEXT + 1024 * MIB
    assert call("cuMemAlloc_v2", Out("b"), 1200 * MIB) == SUCCESS
    assert fake.over() == (0, 0)


def test_what_a_pool_has_in_stock_is_given_out_at_the_limit(one: Tenant) -> None:
    fake, container, call = one
    assert call("cuDeviceGetMemPool", Out("pool"), 0) == SUCCESS
    assert call("cuMemPoolSetAttribute", Var("pool"), 4, b"\xff" * 8) == SUCCESS
    assert call("cuMemAllocAsync", Out("a"), 1024 * MIB, 0) == SUCCESS
    assert call("cuMemAlloc_v2", Out("rest"), LIMIT - CONTEXT - 1024 * MIB) == SUCCESS
    for _ in range(20):
        assert call("cuMemFreeAsync", Var("a"), 0) == SUCCESS
        assert call("cuMemAllocAsync", Out("a"), 1000 * MIB, 0) == SUCCESS
    assert call("cuMemAllocAsync", Out("more"), 30 * MIB, 0) == OUT_OF_MEMORY
    assert fake.over() == (0, 0)
    assert differences(fake, container) == [0]


def test_wrong_calls_do_not_move_the_ledger(one: Tenant) -> None:
    fake, container, call = one
    assert call("cuMemAlloc_v2", Out("a"), 5 * MIB) == SUCCESS
    for size in (0, 2**64 - 1, 2**64 - BLOCK, 2**63):
        assert call("cuMemAlloc_v2", Out("x"), size) in (INVALID_VALUE, OUT_OF_MEMORY)
        assert call("cuMemAllocManaged", Out("x"), size, 1) in (INVALID_VALUE, OUT_OF_MEMORY)
        assert call("cuMemAllocAsync", Out("x"), size, 0) in (INVALID_VALUE, OUT_OF_MEMORY)
        assert call("cuMemAllocPitch_v2", Out("x"), Out("y"), size, 2**40, 4) != SUCCESS
        assert call("cuMemCreate", Out("x"), size, properties(), 0) != SUCCESS
    assert call("cuMemFree_v2", Var("a")) == SUCCESS
    for name in ("cuMemFree_v2", "cuArrayDestroy", "cuMemRelease", "cuModuleUnload"):
        for handle in (12345 << 9, call.get("a")):
            assert call(name, handle) != SUCCESS
    assert call("cuMemFreeAsync", Var("a"), 0) != SUCCESS
    assert fake.used() == container.total("held") == CONTEXT
    assert container.total("pending") == 0


def test_a_limit_changes_live(one: Tenant) -> None:
    fake, container, call = one
    assert call("cuMemAlloc_v2", Out("a"), 1000 * MIB) == SUCCESS
    container.change(memory_limit=1024 * MIB)  # below what is in use
    assert call("cuMemAlloc_v2", Out("b"), 1) == OUT_OF_MEMORY
    assert call("cuMemGetInfo_v2", Out("free"), Out("total")) == SUCCESS
    assert (call.get("free"), call.get("total")) == (0, 1024 * MIB)
    assert call("cuMemFree_v2", Var("a")) == SUCCESS
    assert call("cuMemAlloc_v2", Out("b"), 300 * MIB) == SUCCESS
    container.change(memory_limit=4096 * MIB)
    assert call("cuMemAlloc_v2", Out("c"), 3000 * MIB) == SUCCESS
    container.change(memory_limit=0)  # none
    assert call("cuMemAlloc_v2", Out("d"), 9000 * MIB) == SUCCESS
    assert call("cuMemGetInfo_v2", Out("free"), Out("total")) == SUCCESS
    assert call.get("total") == fake.total()
    assert differences(fake, container) == [0]


def test_what_nvml_sees_beyond_the_ledger_counts_as_used(one: Tenant) -> None:
    _, container, call = one
    container.change(memory_overhead=500 * MIB)
    assert call("cuMemGetInfo_v2", Out("free"), Out("total")) == SUCCESS
    room = LIMIT - CONTEXT - 500 * MIB
    assert call.get("free") == room
    assert call("cuMemAlloc_v2", Out("a"), room + 1) == OUT_OF_MEMORY
    assert call("cuMemAlloc_v2", Out("a"), room) == SUCCESS


def test_cuda_shows_the_limit_as_the_gpu(one: Tenant) -> None:
    _, container, call = one
    assert call("cuMemAlloc_v2", Out("a"), 100 * MIB) == SUCCESS
    assert call("cuMemGetInfo_v2", Out("free"), Out("total")) == SUCCESS
    assert call.get("total") == LIMIT
    assert call.get("total") - call.get("free") == container.total("held")
    assert call("cuDeviceTotalMem_v2", Out("total"), 0) == SUCCESS
    assert call.get("total") == LIMIT
    # the first ABI counts in 32 bits
    assert call("cuDeviceTotalMem", Out("total"), 0) == SUCCESS
    assert call.get("total") == LIMIT
    if call("cuMemGetInfo", Out("free32"), Out("total32")) == SUCCESS:
        assert call.get("total32") == LIMIT


NVML = """
import ctypes, json, pynvml as n
n.nvmlInit()
d = n.nvmlDeviceGetHandleByIndex(0)
m, v = n.nvmlDeviceGetMemoryInfo(d), n.nvmlDeviceGetMemoryInfo(d, version=n.nvmlMemory_v2)
running = n.nvmlDeviceGetComputeRunningProcesses(d)
old = [getattr(n, f"nvmlDeviceGetComputeRunningProcesses{s}")(d) for s in ("_v2", "_v3")]
library = n.nvmlLib
first = (ctypes.c_ulonglong * 16)()  # of the first ABI: {pid, bytes}
count = ctypes.c_uint(1)
result = library.nvmlDeviceGetComputeRunningProcesses(d, ctypes.byref(count), first)
empty = ctypes.c_uint(0)
short = library.nvmlDeviceGetComputeRunningProcesses(d, ctypes.byref(empty), None)
mps = [
    getattr(library, f"nvmlDeviceGetMPSComputeRunningProcesses{s}")(d, ctypes.byref(none), first)
    or none.value
    for s in ("", "_v2", "_v3")
    for none in [ctypes.c_uint(8)]
]
graphics = [
    getattr(library, f"nvmlDeviceGetGraphicsRunningProcesses{s}")(d, ctypes.byref(none), first)
    or none.value
    for s in ("", "_v2", "_v3")
    for none in [ctypes.c_uint(8)]
]
try:
    samples = sorted({p.pid for p in n.nvmlDeviceGetProcessUtilization(d, 0)})
except n.NVMLError as error:
    samples = str(error)
try:
    uses = sorted({p.pid for p in n.nvmlDeviceGetProcessesUtilizationInfo(d, 0)})
except n.NVMLError as error:
    uses = str(error)
print(json.dumps({
    "first": [result, count.value, first[0] & 0xFFFFFFFF, first[1]],
    "short": [short, empty.value],
    "none": mps + graphics,
    "pids": [samples, uses],
    "memory": [m.total, m.used, m.free],
    "second": [v.total, v.used, v.free, v.reserved],
    "running": [[[p.pid, p.usedGpuMemory] for p in each] for each in (running, *old)],
    "graphics": len(n.nvmlDeviceGetGraphicsRunningProcesses(d)),
}))
"""


def test_nvml_shows_the_limit_and_only_the_containers_processes(one: Tenant) -> None:
    fake, container, call = one
    assert call("cuMemAlloc_v2", Out("a"), 100 * MIB) == SUCCESS
    with Calls(fake.environment("stranger")) as stranger:
        assert stranger("cuMemAlloc_v2", Out("a"), 3000 * MIB) == SUCCESS
        for each in (call, stranger):  # samples of utilisation come of work
            ptx = b".version 8.0\n.target sm_90\n\0"
            assert each("cuModuleLoadData", Out("m"), ptx) == SUCCESS
            assert each("cuModuleGetFunction", Out("f"), Var("m"), '"ns_400000000') == SUCCESS
            launch = (Var("f"), 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
            assert each("cuLaunchKernel", *launch) == SUCCESS
            assert each("cuCtxSynchronize") == SUCCESS
            assert each("cuModuleUnload", Var("m")) == SUCCESS
        environment = {**fake.environment(), **container.environment()}
        seen = json.loads(build.checked(sys.executable, "-c", NVML, environment=environment))
    used = CONTEXT + 100 * MIB
    assert seen["memory"] == [LIMIT, used, LIMIT - used]
    assert seen["second"] == [LIMIT, used, LIMIT - used, 0]
    assert seen["running"] == [[[call.process.pid, used]]] * 3
    assert seen["graphics"] == 0
    assert seen["first"] == [0, 1, call.process.pid, used]
    assert seen["short"] == [7, 1]  # NVML_ERROR_INSUFFICIENT_SIZE, and how many there are
    assert seen["none"] == [0] * 6
    assert seen["pids"] == [[call.process.pid]] * 2, "a stranger's use of the GPU shows"


def test_a_forked_child_holds_nothing_of_its_parent(one: Tenant) -> None:
    fake, container, call = one
    assert call("cuMemAlloc_v2", Out("a"), 100 * MIB) == SUCCESS
    before = container.total("held")
    call.ask("fork")
    call("cuMemFree_v2", Var("a"))  # of the parent: not this process's to free, or to credit
    call("cuMemAlloc_v2", Out("b"), MIB)
    assert container.total("held") == before == fake.used()


def test_only_the_exporter_pays_for_shared_memory(one: Tenant) -> None:
    fake, container, call = one
    assert call("cuMemAlloc_v2", Out("a"), 100 * MIB) == SUCCESS
    assert call("cuIpcGetMemHandle", Out("handle"), Var("a")) == SUCCESS
    handle = bytes.fromhex(call.ask("hex", "handle", 64))
    with Calls({**fake.environment(), **container.environment()}) as peer:
        assert peer.ask("open", Out("b"), handle, 1) == "0"
        assert container.total("held") == fake.used() == 2 * CONTEXT + 100 * MIB
        assert peer("cuIpcCloseMemHandle", Var("b")) == SUCCESS
        assert container.total("held") == fake.used()
    assert call("cuMemCreate", Out("h"), BLOCK, properties(export=POSIX_FD), 0) == SUCCESS
    assert call("cuMemFree_v2", Var("a")) == SUCCESS


def test_each_gpu_has_its_own_limit() -> None:
    with tenant(gpus=2, limit=LIMIT) as (fake, container):
        container.change(1, memory_limit=1024 * MIB)
        with Calls({**fake.environment(), **container.environment()}, device=1) as call:
            assert call("cuMemAlloc_v2", Out("a"), 600 * MIB) == OUT_OF_MEMORY
            assert call("cuMemAlloc_v2", Out("a"), 400 * MIB) == SUCCESS
            assert call("cuDevicePrimaryCtxRetain", Out("other"), 0) == SUCCESS
            assert call("cuCtxSetCurrent", Var("other")) == SUCCESS
            assert call("cuMemAlloc_v2", Out("b"), 1400 * MIB) == SUCCESS
            assert differences(fake, container) == [0, 0]
            assert call("cuMemFree_v2", Var("a")) == SUCCESS  # of the GPU that is not current
            assert call("cuDeviceTotalMem_v2", Out("total"), 1) == SUCCESS
            assert call.get("total") == 1024 * MIB
            assert [container.total("held", row) for row in (0, 1)] == [
                CONTEXT + 1400 * MIB,
                CONTEXT,
            ]
            assert differences(fake, container) == [0, 0]


HOST_PATHS = {
    "cuMemAllocHost_v2": ("cuMemFreeHost", (Out("h"), 3 * MIB)),
    "cuMemAllocHost": ("cuMemFreeHost", (Out("h"), 3 * MIB)),
    "cuMemHostAlloc": ("cuMemFreeHost", (Out("h"), 3 * MIB, 1)),
    "cuMemHostRegister_v2": ("cuMemHostUnregister", (1 << 44, 3 * MIB, 0)),
    "cuMemHostRegister": ("cuMemHostUnregister", (1 << 44, 3 * MIB, 0)),
}


@pytest.mark.parametrize("name", HOST_PATHS)
def test_page_locked_memory_is_counted_and_limited(one: Tenant, name: str) -> None:
    _, container, call = one
    end, arguments = HOST_PATHS[name]
    target = Var("h") if arguments[0] == Out("h") else arguments[0]
    (slot,) = container.slots()
    assert call(name, *arguments) == SUCCESS
    assert slot.host_bytes == 3 * MIB
    container.limits.host_limit = 5 * MIB
    assert call("cuMemAllocHost_v2", Out("more"), 3 * MIB) == OUT_OF_MEMORY
    assert call("cuMemAllocHost_v2", Out("more"), 2 * MIB) == SUCCESS
    assert call(end, target) == SUCCESS
    assert slot.host_bytes == 2 * MIB
    assert call("cuMemFreeHost", Var("more")) == SUCCESS
    assert slot.host_bytes == 0


@pytest.mark.parametrize("name", [*HOST_PATHS, "cuMemFreeHost", "cuMemHostUnregister"])
def test_without_its_hook_page_locked_memory_is_counted_wrongly(one: Tenant, name: str) -> None:
    _, container, call = one
    assert call.ask("bypass", name) == "0"
    for begin, (end, arguments) in HOST_PATHS.items():
        if name in (begin, end):
            assert call(begin, *arguments) == SUCCESS
            held = container.slots()[0].host_bytes
            target = Var("h") if arguments[0] == Out("h") else arguments[0]
            assert call(end, target) == SUCCESS
            assert (held, container.slots()[0].host_bytes) != (3 * MIB, 0)
            break


def test_a_killed_process_leaves_its_bytes_to_its_peers() -> None:
    with tenant(limit=LIMIT) as (fake, container):
        environment = {**fake.environment(), **container.environment()}
        with Calls(environment) as call:
            victim = Calls(environment)
            assert victim("cuMemAlloc_v2", Out("a"), 900 * MIB) == SUCCESS
            assert call("cuMemAlloc_v2", Out("a"), 900 * MIB) == OUT_OF_MEMORY
            victim.kill()
            assert call("cuMemAlloc_v2", Out("a"), 900 * MIB) == SUCCESS
            assert len(container.slots()) == 1
            assert fake.over() == (0, 0)
            assert differences(fake, container) == [0]
