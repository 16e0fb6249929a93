"""The real nvidia-ml-py on the fake driver: what it reads is what clients did."""

import ctypes
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType

import pynvml
import pytest

from native import build
from native.fake import Fake

MIB = 1 << 20


@contextmanager
def using(fake: Fake) -> Iterator[ModuleType]:
    """nvidia-ml-py in this process, on that machine."""
    ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))  # its soname is then known to dlopen
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAKEGPU_STATE", str(fake.state))
        pynvml.nvmlInit()
        try:
            yield pynvml
        finally:
            pynvml.nvmlShutdown()


@pytest.fixture
def nvml(fake: Fake) -> Iterator[ModuleType]:
    with using(fake) as found:
        yield found


@pytest.fixture
def hold(fake: Fake) -> Iterator[Callable[..., int]]:
    """Starts clients that hold memory; gives a client's pid once it does."""
    with ExitStack() as stack:

        def start(mib: int, *kernel: str, tag: str = "a", faults: str = "") -> int:
            program = build.client("hold", "-l:libcuda.so.1")
            environment = fake.environment(tag, faults=faults)
            process = stack.enter_context(
                build.start(program, mib, *kernel, environment=environment)
            )
            stack.callback(lambda: process.stdin and process.stdin.close())
            assert process.stdout
            assert process.stdout.readline() == "held\n"
            return process.pid

        yield start


def raised(code: int, call: Callable[[], object]) -> bool:
    with pytest.raises(pynvml.NVMLError) as caught:
        call()
    return bool(caught.value.value == code)


def test_a_gpu_is_found_by_index_uuid_and_pci_bus(nvml: ModuleType, fake: Fake) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    uuid = nvml.nvmlDeviceGetUUID(handle)
    bus = nvml.nvmlDeviceGetPciInfo(handle).busId
    assert (nvml.nvmlDeviceGetCount(), uuid) == (1, f"GPU-{fake.uuid()}")
    assert nvml.nvmlDeviceGetName(handle) == "NVIDIA H200"
    for found in (nvml.nvmlDeviceGetHandleByUUID(uuid), nvml.nvmlDeviceGetHandleByPciBusId(bus)):
        assert nvml.nvmlDeviceGetIndex(found) == 0
    assert raised(
        nvml.NVML_ERROR_NOT_FOUND, lambda: nvml.nvmlDeviceGetHandleByUUID("GPU-" + "0" * 32)
    )
    assert raised(nvml.NVML_ERROR_INVALID_ARGUMENT, lambda: nvml.nvmlDeviceGetHandleByIndex(1))


@pytest.mark.parametrize(
    ("cuda", "driver"), [("13050", "615."), ("13000", "580."), ("12040", "550."), ("11080", "520.")]
)
def test_the_driver_presented_has_a_version(
    nvml: ModuleType, monkeypatch: pytest.MonkeyPatch, cuda: str, driver: str
) -> None:
    monkeypatch.setenv("FAKEGPU_CUDA", cuda)
    assert nvml.nvmlSystemGetDriverVersion().startswith(driver)
    assert nvml.nvmlSystemGetCudaDriverVersion() == int(cuda)


def test_memory_of_processes_sums_to_what_the_gpu_holds(
    nvml: ModuleType, fake: Fake, hold: Callable[..., int]
) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    pids = {hold(100), hold(200, tag="b")}
    used = {p.pid: p.usedGpuMemory for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
    memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    old = nvml.nvmlDeviceGetMemoryInfo(handle)
    assert used.keys() == pids
    assert sum(used.values()) == memory.used == fake.used("a") + fake.used("b")
    assert memory.total == memory.reserved + memory.used + memory.free
    assert (old.total, old.free) == (memory.total, memory.free)
    assert old.used == memory.used + memory.reserved
    assert fake.used("b") - fake.used("a") == 100 * MIB
    assert nvml.nvmlDeviceGetGraphicsRunningProcesses(handle) == []
    assert nvml.nvmlDeviceGetMPSComputeRunningProcesses(handle) == []
    assert "hold" in nvml.nvmlSystemGetProcessName(pids.pop())


def test_under_mps_clients_are_in_both_lists() -> None:
    with Fake(mode="mps") as fake, using(fake) as nvml:
        handle = nvml.nvmlDeviceGetHandleByIndex(0)
        program = build.client("hold", "-l:libcuda.so.1")
        with build.start(program, 1, environment=fake.environment()) as process:
            assert process.stdout
            assert process.stdout.readline() == "held\n"
            for listed in ("Compute", "MPSCompute"):
                ask = getattr(nvml, f"nvmlDeviceGet{listed}RunningProcesses")
                assert [found.pid for found in ask(handle)] == [process.pid]
            process.communicate("")


def test_the_memory_of_a_killed_process_is_gone(
    nvml: ModuleType, fake: Fake, hold: Callable[..., int]
) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    pid = hold(64)
    os.kill(pid, 9)
    deadline = time.monotonic() + 60
    while nvml.nvmlDeviceGetComputeRunningProcesses(handle) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert nvml.nvmlDeviceGetComputeRunningProcesses(handle) == []
    assert nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used == 0


def test_pids_are_those_of_a_namespace_where_the_driver_errs(
    nvml: ModuleType, fake: Fake, hold: Callable[..., int]
) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    pid = hold(1)
    fake.fault("nvml_pids_inside=1")
    (process,) = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    assert process.pid != pid
    assert process.usedGpuMemory == fake.used("a")


def test_utilisation_is_seen_per_gpu_and_per_process(
    nvml: ModuleType, fake: Fake, hold: Callable[..., int]
) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    assert raised(
        nvml.NVML_ERROR_NOT_FOUND, lambda: nvml.nvmlDeviceGetProcessUtilization(handle, 0)
    )
    idle = hold(1)
    pid = hold(1, "ns_5000000", tag="b")
    for _ in range(10):  # where this machine stands still, so does its load
        time.sleep(1.0)
        rows = {row.pid: row for row in nvml.nvmlDeviceGetProcessUtilization(handle, 0)}
        if rows[pid].smUtil > 50 and nvml.nvmlDeviceGetUtilizationRates(handle).gpu > 50:
            break
    assert rows[pid].smUtil > 50
    assert idle not in rows or rows[idle].smUtil == 0
    assert abs(rows[pid].timeStamp / 1e6 - time.time()) < 60, "of this clock, and no other"
    assert nvml.nvmlDeviceGetUtilizationRates(handle).gpu > 50
    last = rows[pid].timeStamp
    again = nvml.nvmlDeviceGetProcessesUtilizationInfo(handle, last - 1)
    assert any(row.pid == pid for row in again)
    fake.fault("nvml_util_zero=1")
    assert {row.smUtil for row in nvml.nvmlDeviceGetProcessUtilization(handle, 0)} == {0}
    fake.fault("nvml_util_off=1")
    assert raised(
        nvml.NVML_ERROR_NOT_SUPPORTED, lambda: nvml.nvmlDeviceGetProcessUtilization(handle, 0)
    )


def test_an_xid_reaches_every_event_set_and_a_lost_gpu_answers_nothing(
    nvml: ModuleType, fake: Fake
) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    sets = [nvml.nvmlEventSetCreate() for _ in range(2)]
    for events in sets:
        nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
    deaf = nvml.nvmlEventSetCreate()
    assert raised(nvml.NVML_ERROR_TIMEOUT, lambda: nvml.nvmlEventSetWait_v2(sets[0], 10))
    threading.Timer(0.05, fake.xid, (31,)).start()
    for events in sets:
        event = nvml.nvmlEventSetWait_v2(events, 60_000)
        assert (event.eventData, event.eventType) == (31, nvml.nvmlEventTypeXidCriticalError)
    fake.xid(79)
    assert nvml.nvmlEventSetWait_v2(sets[0], 0).eventData == 79
    assert raised(nvml.NVML_ERROR_TIMEOUT, lambda: nvml.nvmlEventSetWait_v2(deaf, 0))
    for call in (nvml.nvmlDeviceGetMemoryInfo, nvml.nvmlDeviceGetUtilizationRates):
        assert raised(nvml.NVML_ERROR_GPU_IS_LOST, lambda call=call: call(handle))
    for events in (*sets, deaf):
        nvml.nvmlEventSetFree(events)


def test_gpus_of_a_server_know_their_links_and_numa_nodes() -> None:
    with Fake("h200", gpus=8) as fake, using(fake) as nvml:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(8)]
        assert len({nvml.nvmlDeviceGetUUID(h) for h in handles}) == 8
        nodes = [nvml.nvmlDeviceGetMemoryAffinity(h, 1, 0)[0] for h in handles]
        for a, b in ((0, 1), (0, 7)):
            level = nvml.nvmlDeviceGetTopologyCommonAncestor(handles[a], handles[b])
            assert (level == nvml.NVML_TOPOLOGY_SYSTEM) == (nodes[a] != nodes[b])
        status = nvml.nvmlDeviceGetP2PStatus(
            handles[0], handles[1], nvml.NVML_P2P_CAPS_INDEX_NVLINK
        )
        assert status == nvml.NVML_P2P_STATUS_OK
        links = [nvml.nvmlDeviceGetNvLinkState(handles[0], link) for link in range(18)]
        assert links == [1] * 18
        assert raised(
            nvml.NVML_ERROR_NOT_SUPPORTED, lambda: nvml.nvmlDeviceGetNvLinkState(handles[0], 18)
        )
        assert len(nvml.nvmlDeviceGetCpuAffinity(handles[0], 2)) == 2


def test_what_nvidia_smi_asks_has_an_answer(nvml: ModuleType) -> None:
    h = nvml.nvmlDeviceGetHandleByIndex(0)
    assert nvml.nvmlDeviceGetCudaComputeCapability(h) == (9, 0)
    assert nvml.nvmlDeviceGetArchitecture(h) == nvml.NVML_DEVICE_ARCH_HOPPER
    assert nvml.nvmlDeviceGetMigMode(h) == [0, 0]
    assert nvml.nvmlDeviceGetComputeMode(h) == nvml.NVML_COMPUTEMODE_DEFAULT
    assert nvml.nvmlDeviceGetPersistenceMode(h) == nvml.NVML_FEATURE_ENABLED
    assert nvml.nvmlDeviceGetAccountingMode(h) == nvml.NVML_FEATURE_DISABLED
    assert nvml.nvmlDeviceGetPowerUsage(h) < nvml.nvmlDeviceGetEnforcedPowerLimit(h) == 700_000
    assert 20 < nvml.nvmlDeviceGetTemperature(h, nvml.NVML_TEMPERATURE_GPU) < 90
    assert 20 < nvml.nvmlDeviceGetTemperatureV(h, nvml.NVML_TEMPERATURE_GPU) < 90
    assert nvml.nvmlDeviceGetMaxClockInfo(h, nvml.NVML_CLOCK_SM) == 1980
    assert nvml.nvmlDeviceGetBAR1MemoryInfo(h).bar1Total > 0
    assert nvml.nvmlDeviceGetEncoderUtilization(h)[0] == 0
    assert nvml.nvmlDeviceGetMinorNumber(h) == 0
    assert nvml.nvmlDeviceGetNumGpuCores(h) == 132 * 128
    (value,) = nvml.nvmlDeviceGetFieldValues(h, [1])
    assert value.nvmlReturn == nvml.NVML_ERROR_NOT_SUPPORTED


def test_every_function_of_the_header_is_there_and_the_unmodelled_ones_are_counted(
    nvml: ModuleType, fake: Fake
) -> None:
    header = (build.cuda_headers() / "nvml.h").read_text()
    names = set(re.findall(r"\bDECLDIR\s+(nvml\w+)\s*\(", header))
    library = ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))
    assert len(names) > 400
    assert not [name for name in names if not hasattr(library, name)]
    before = fake.calls("nvmlDeviceSetComputeMode")
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    assert raised(nvml.NVML_ERROR_NOT_SUPPORTED, lambda: nvml.nvmlDeviceSetComputeMode(handle, 3))
    assert fake.calls("nvmlDeviceSetComputeMode") == before + 1


def test_without_a_state_there_is_no_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = (
        "import pynvml\n"
        "try: pynvml.nvmlInit()\n"
        "except pynvml.NVMLError as error: print(error.value)\n"
    )
    said = build.checked(
        sys.executable,
        "-c",
        script,
        environment={
            "LD_LIBRARY_PATH": str(build.LIBRARIES),
            "FAKEGPU_STATE": str(tmp_path / "no"),
        },
    )
    assert int(said) == pynvml.NVML_ERROR_DRIVER_NOT_LOADED


def test_no_function_crashes_on_missing_arguments_or_a_wrong_handle(fake: Fake) -> None:
    script = r"""
import ctypes, re, sys
library = ctypes.CDLL("libnvidia-ml.so.1")
header = open(sys.argv[1]).read()
names = set(re.findall(r"\bDECLDIR\s+(nvml\w+)\s*\(", header))
of_device = set(re.findall(r"\bDECLDIR\s+(nvml\w+)\s*\(\s*nvmlDevice_t", header))
names -= {"nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString"}
assert [n for n in names if getattr(library, n)(None, None, None, None, None) != 1] == []
assert library.nvmlInit_v2() == 0
handle = ctypes.c_void_p()
assert library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
for first in (None, ctypes.c_void_p(12345), handle):
    for name in sorted(of_device if first else names):
        print(name, flush=True)
        result = getattr(library, name)(first, None, None, None, None)
        assert result in (1, 2, 3, 6, 7, 9, 13), (name, result)
        assert first is handle or result != 0
assert library.nvmlShutdown() == 0
assert library.nvmlShutdown() == 1
"""
    header = str(build.cuda_headers() / "nvml.h")
    environment = fake.environment()
    done = build.run(sys.executable, "-c", script, header, environment=environment)
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}: {done.stderr}"
