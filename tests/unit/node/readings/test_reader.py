"""A GPU is read whole, whatever its driver lacks or gets wrong."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from alnair.node.readings.processes import born_us
from alnair.node.readings.reader import GpuReader
from alnair.node.readings.values import NvmlError
from alnair.profiler.samples import GpuSample, ProcessSample
from kit.scripted_nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    NOT_FOUND,
    NOT_SUPPORTED,
    UNKNOWN,
    ScriptedError,
    ScriptedNvml,
    field,
    memory,
    process,
    sampled,
    use_of,
)

MIB, GIB = 1 << 20, 1 << 30
OWN = os.getpid()
PROCESSES = "DeviceGetComputeRunningProcesses"
USE, NEW_USE = "DeviceGetProcessUtilization", "DeviceGetProcessesUtilizationInfo"


def now_us() -> int:
    return time.time_ns() // 1000


def whole(**more: Any) -> ScriptedNvml:
    """A driver with one GPU on which this process runs."""
    return ScriptedNvml(
        **{
            "DeviceGetMemoryInfo": memory(3 * GIB, reserved=GIB),
            "DeviceGetSamples": lambda _, kind, since: sampled(
                *((20, 80) if kind == 1 else (5, 15)), stamp=now_us()
            ),
            PROCESSES: [process(OWN, 2 * GIB)],
            USE: lambda _, since: [use_of(OWN, now_us(), 30, 6)],
            **more,
        }
    )


def reader(api: ScriptedNvml) -> GpuReader:
    return GpuReader(api, "GPU-1", "handle")


def sample(api: ScriptedNvml) -> GpuSample:
    return reader(api).read().sample


@pytest.fixture
def other() -> Iterator[int]:
    """The pid of another process."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        yield started.pid
        started.communicate(b"\n")


def test_a_gpu_with_a_plain_driver() -> None:
    reading = reader(whole()).read()
    seen = reading.sample
    assert (seen.util, seen.memory_copy) == (50.0, 10.0)
    assert [percent for _, percent in seen.busy] == [20.0, 80.0]
    assert (seen.memory_bytes, seen.memory_total) == (3 * GIB, 1 << 34)
    assert seen.processes == (ProcessSample(OWN, 30.0, 6.0, 2 * GIB),)
    assert (seen.power_w, seen.temperature_c, seen.energy_j) == (None, None, None)
    assert (seen.pcie_rx, seen.nvlink_tx, seen.throttle, seen.profiling) == (None, None, (), {})
    assert reading.usage.memory_bytes == 4 * GIB, "the driver's own part is in use, too"
    assert reading.usage.is_mean
    assert reading.load.memory == {OWN: 2 * GIB}
    assert reading.load.shares == {OWN: 0.3}


# ---- how busy ------------------------------------------------------------------------------------


def test_samples_are_asked_for_from_the_last_one_on() -> None:
    api = whole(DeviceGetSamples=lambda _, kind, since: sampled(10, stamp=now_us()))
    one, before = reader(api), now_us()
    one.read()
    told = now_us()
    one.read()
    first, _, second, _ = (since for _, since in api.asked("DeviceGetSamples"))
    assert before - 1_000_000 <= first <= told - 1_000_000
    assert before <= second <= told


def test_without_samples_the_rates_are_taken() -> None:
    api = whole(
        DeviceGetSamples=ScriptedError(NOT_SUPPORTED),
        DeviceGetUtilizationRates=SimpleNamespace(gpu=40, memory=4),
    )
    reading = reader(api).read()
    seen = reading.sample
    assert (seen.util, seen.memory_copy, seen.busy) == (40.0, 4.0, ())
    assert not reading.usage.is_mean


def test_what_nobody_measures_is_none_and_not_zero() -> None:
    seen = sample(
        ScriptedNvml(
            DeviceGetMemoryInfo=memory(0), DeviceGetComputeRunningProcesses=[process(OWN, None)]
        )
    )
    assert (seen.util, seen.memory_copy) == (None, None)
    assert seen.processes == (ProcessSample(OWN, None, None, None),)


def test_samples_of_billions_or_of_the_future_are_dropped() -> None:
    stamp = now_us()
    _, good = sampled(10, 30, stamp=stamp)
    _, billions = sampled(4_000_000_000, stamp=stamp - 5)
    _, future = sampled(90, stamp=stamp + 60_000_000)
    api = whole(DeviceGetSamples=(1, good + billions + future))
    seen = sample(api)
    assert seen.util == 20.0
    assert [percent for _, percent in seen.busy] == [10.0, 30.0]


# ---- memory --------------------------------------------------------------------------------------


def test_an_old_driver_tells_memory_with_its_own_part() -> None:
    def old(_: str, version: int = 1) -> Any:
        return ScriptedError(FUNCTION_NOT_FOUND) if version == 2 else memory(4 * GIB)

    reading = reader(whole(DeviceGetMemoryInfo=old)).read()
    assert (reading.sample.memory_bytes, reading.usage.memory_bytes) == (4 * GIB, 4 * GIB)


def test_a_gpu_that_shares_the_machines_memory_has_none_of_its_own() -> None:
    reading = reader(whole(DeviceGetMemoryInfo=ScriptedError(NOT_SUPPORTED))).read()
    assert (reading.sample.memory_bytes, reading.sample.memory_total) == (None, None)
    assert reading.usage.memory_bytes == 2 * GIB, "what its processes hold"


@pytest.mark.parametrize("code", [GPU_IS_LOST, UNKNOWN])
def test_a_gpu_that_does_not_even_tell_its_memory_is_not_there(code: int) -> None:
    with pytest.raises(NvmlError, match=f"GPU-1: NVML error {code}"):
        sample(whole(DeviceGetMemoryInfo=ScriptedError(code)))


@pytest.mark.parametrize("name", [USE, PROCESSES, "DeviceGetSamples", "DeviceGetTemperature"])
def test_a_gpu_that_is_lost_at_any_call_is_not_there(name: str) -> None:
    with pytest.raises(NvmlError, match="NVML error 15"):
        sample(whole(**{name: ScriptedError(GPU_IS_LOST)}))


# ---- what processes use: the traps of nvmlDeviceGetProcessUtilization ----------------------------


def test_use_is_asked_for_from_the_last_stamp_on_and_never_from_zero() -> None:
    stamp = now_us()
    answers: list[Any] = [
        [use_of(OWN, stamp, 30)],
        ScriptedError(NOT_FOUND),
        [use_of(OWN, stamp + 5, 20)],
    ]
    api = whole(**{USE: lambda _, since: answers.pop(0)})
    one = reader(api)
    found = [one.read().sample.processes[0].sm for _ in range(3)]
    ((first,), (second,), (third,)) = api.asked(USE)
    assert found == [30.0, 0.0, 20.0], "with nothing new, it did nothing"
    assert stamp - 2_000_000 < first < stamp
    assert (second, third) == (stamp, stamp)


def test_an_idle_process_whose_last_sample_is_told_for_ever_does_nothing() -> None:
    old = use_of(OWN, now_us() - 9_000_000, 90)
    assert sample(whole(**{USE: [old]})).processes[0].sm == 0.0


def test_a_success_without_rows_which_the_package_raises_is_no_error() -> None:
    assert sample(whole(**{USE: ScriptedError(0)})).processes[0].sm == 0.0


def test_a_hundred_rows_of_garbage_leave_the_true_one() -> None:
    stamp = now_us()
    garbage = [use_of(pid, stamp, 3_000_000_000 + pid) for pid in range(100)]
    rows = [*garbage, use_of(0, stamp, 50), use_of(2**22 + 1, stamp, 50), use_of(OWN, stamp, 30)]
    seen = sample(whole(**{USE: rows}))
    assert seen.processes == (ProcessSample(OWN, 30.0, 0.0, 2 * GIB),)


def test_processes_that_take_turns_do_not_add_up_to_more_than_the_gpu_did(other: int) -> None:
    api = whole(
        **{
            PROCESSES: [process(OWN), process(other)],
            USE: lambda _, since: [use_of(OWN, now_us(), 90, 40), use_of(other, now_us(), 30, 40)],
        }
    )
    reading = reader(api).read()
    assert {one.pid: one.sm for one in reading.sample.processes} == {
        OWN: pytest.approx(37.5),
        other: pytest.approx(12.5),
    }
    assert sum(one.memory_copy or 0 for one in reading.sample.processes) == pytest.approx(10.0)
    assert reading.load.shares == {OWN: 0.9, other: 0.3}, "as the driver says"


def test_pids_of_another_namespace_are_counted_and_given_to_nobody(other: int) -> None:
    rows = [use_of(OWN, now_us(), 30), use_of(other, now_us(), 60)]
    reading = reader(whole(**{USE: rows})).read()
    assert [(one.pid, one.sm) for one in reading.sample.processes] == [(OWN, 30.0)]
    assert reading.unmapped == 1


def test_the_newer_call_is_preferred_and_read_by_the_same_rules() -> None:
    rows = [use_of(OWN, now_us(), 25), use_of(0, now_us(), 99)]
    api = whole(**{NEW_USE: rows})
    assert sample(api).processes[0].sm == 25.0
    assert not api.asked(USE)


def test_a_driver_without_the_newer_call_is_asked_for_it_once() -> None:
    api = whole(**{NEW_USE: ScriptedError(FUNCTION_NOT_FOUND)})
    one = reader(api)
    for _ in range(3):
        assert one.read().sample.processes[0].sm == 30.0
    assert len(api.asked(NEW_USE)) == 1


def test_rows_that_came_between_two_questions_are_asked_for_again() -> None:
    answers: list[Any] = [ScriptedError(7), [use_of(OWN, now_us(), 30)]]
    assert sample(whole(**{USE: lambda _, since: answers.pop(0)})).processes[0].sm == 30.0


def test_a_process_that_runs_now_and_then_is_told_by_questions_between_two_readings(
    other: int,
) -> None:
    """The driver takes the mean over the samples in which it ran."""
    stamp = now_us()
    answers = [
        [use_of(OWN, stamp, 70)],
        [use_of(OWN, stamp + 1, 70), use_of(other, stamp + 1, 30)],
        [use_of(OWN, stamp + 2, 70)],
        [use_of(OWN, stamp + 3, 70)],
    ]
    api = whole(**{PROCESSES: [process(OWN), process(other)], USE: lambda _, since: answers.pop(0)})
    one = reader(api)
    one.read()
    one.note()
    one.note()
    assert one.read().load.shares == {OWN: pytest.approx(0.7), other: pytest.approx(0.1)}


def test_an_answer_that_names_nobody_here_says_nothing_of_who_is_here(other: int) -> None:
    stamp = now_us()
    answers = [[use_of(OWN, stamp, 60)], [use_of(other, stamp + 1, 90)], [], []]
    one = reader(whole(**{USE: lambda _, since: answers.pop(0)}))
    one.note()
    one.note()
    reading = one.read()
    assert (reading.load.shares, reading.unmapped) == ({OWN: pytest.approx(0.6)}, 1)


def test_what_was_told_between_two_readings_is_not_lost_where_nothing_follows(other: int) -> None:
    answers: list[Any] = [
        ScriptedError(NOT_FOUND),
        [use_of(OWN, now_us(), 30), use_of(other, now_us(), 60)],
        ScriptedError(NOT_FOUND),
        ScriptedError(NOT_FOUND),
    ]
    one = reader(whole(**{USE: lambda _, since: answers.pop(0)}))
    assert one.read().load.shares == {}
    one.note()
    reading = one.read()
    assert (reading.load.shares, reading.unmapped) == ({OWN: 0.3}, 1)
    assert one.read().load.shares == {}


# ---- who is there --------------------------------------------------------------------------------


def test_a_process_in_two_lists_counts_once() -> None:
    api = whole(DeviceGetGraphicsRunningProcesses=[process(OWN, None), process(OWN, 2 * GIB)])
    assert sample(api).processes[0].memory_bytes == 2 * GIB


def test_clients_of_mps_are_told_as_such() -> None:
    reading = reader(whole(DeviceGetMPSComputeRunningProcesses=[process(OWN)])).read()
    assert reading.load.mps


def test_lists_that_are_scrambled_are_read_in_the_older_layout_from_then_on() -> None:
    scrambled = [process(OWN, 2 * GIB), process(0, OWN), process(4_294_967_295, 1 << 60)]
    api = whole(
        **{PROCESSES: scrambled, f"{PROCESSES}_v2": [process(OWN, 2 * GIB)]},
    )
    one = reader(api)
    for _ in range(2):
        assert one.read().load.memory == {OWN: 2 * GIB}
    assert len(api.asked(PROCESSES)) == 1


def test_an_old_driver_has_only_the_older_lists() -> None:
    api = whole(
        **{
            PROCESSES: ScriptedError(FUNCTION_NOT_FOUND),
            f"{PROCESSES}_v2": [process(OWN, GIB)],
        }
    )
    assert sample(api).processes[0].memory_bytes == GIB


def test_a_process_that_has_ended_and_is_not_buried_has_none() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert born_us(ended.pid) is None
    assert born_us(2**22 + 1) is None
    assert abs((born_us(OWN) or 0) - now_us()) < 3_600_000_000


# ---- counters ------------------------------------------------------------------------------------


def fields(**values: Any) -> Any:
    """Answers to the question for all fields, by their names; others are not supported."""
    names = {83: "energy", 186: "power", 197: "tx", 198: "rx", 138: "link_tx", 202: "link5_tx"}
    return lambda _, asked: [
        values.get(names.get(number, ""), field(0, NOT_SUPPORTED)) for number, _ in asked
    ]


def test_counters_come_in_one_call_each_with_its_own_result() -> None:
    api = whole(
        DeviceGetFieldValues=fields(
            energy=field(5_500), power=field(250_000, kind=1), tx=field(7), link_tx=field(3)
        )
    )
    seen = sample(api)
    assert (seen.energy_j, seen.power_w, seen.pcie_tx, seen.pcie_rx) == (5.5, 250.0, 7, None)
    assert (seen.nvlink_tx, seen.nvlink_rx) == (3 << 10, None)
    assert len(api.asked("DeviceGetFieldValues")) == 1


def test_links_that_have_moved_nothing_count_zero() -> None:
    assert sample(whole(DeviceGetFieldValues=fields(link_tx=field(0)))).nvlink_tx == 0
    assert sample(whole(DeviceGetFieldValues=fields(link5_tx=field(9)))).nvlink_tx == 9


def test_what_fields_lack_is_asked_for_by_calls_of_its_own() -> None:
    seen = sample(
        whole(
            DeviceGetFieldValues=fields(),
            DeviceGetTotalEnergyConsumption=9_000,
            DeviceGetPowerUsage=90_000,
            DeviceGetTemperature=41,
        )
    )
    assert (seen.energy_j, seen.power_w, seen.temperature_c) == (9.0, 90.0, 41.0)


def test_reasons_of_a_low_clock_have_names_and_idleness_is_none() -> None:
    assert sample(whole(DeviceGetCurrentClocksEventReasons=0x1)).throttle == ()
    seen = sample(whole(DeviceGetCurrentClocksThrottleReasons=0x44))
    assert seen.throttle == ("sw_power_cap", "hw_thermal_slowdown")


# ---- counters of the hardware --------------------------------------------------------------------


def with_gpm(metrics: dict[int, float], **more: Any) -> ScriptedNvml:
    def get(asked: Any) -> Any:
        for at in range(asked.numMetrics):
            one = asked.metrics[at]
            one.nvmlReturn = 0 if one.metricId in metrics else NOT_SUPPORTED
            one.value = metrics.get(one.metricId, 0.0)
        return asked

    numbers = iter(range(100))
    return whole(
        GpmQueryDeviceSupport=SimpleNamespace(isSupportedDevice=1),
        GpmSampleAlloc=lambda: f"sample {next(numbers)}",
        GpmSampleGet=lambda _, into: into,
        GpmMetricsGet=get,
        GpmSampleFree=None,
        **more,
    )


def test_hardware_counters_are_told_between_two_samples_in_turn() -> None:
    api = with_gpm({1: 90.0, 2: 80.0, 3: 40.0, 10: 101.0})
    one = reader(api)
    told = [one.read().sample.profiling for _ in range(3)]
    assert told[0] == {}
    assert told[1] == told[2] == {"sm_active": 0.8, "sm_occupancy": 0.4, "dram_active": 1.0}
    taken = [into for (into,) in api.asked("GpmSampleGet")]
    assert taken[0] == taken[2] != taken[1]
    one.close()
    assert len(api.asked("GpmSampleFree")) == len(api.asked("GpmSampleAlloc")) == 2


def test_a_gpu_without_hardware_counters_is_asked_once() -> None:
    api = whole(GpmQueryDeviceSupport=SimpleNamespace(isSupportedDevice=0))
    one = reader(api)
    for _ in range(3):
        assert one.read().sample.profiling == {}
    assert len(api.asked("GpmQueryDeviceSupport")) == 1


def cut(*instances: int) -> ScriptedNvml:
    """A GPU in MIG mode with a device in each of these GPU instances; it measures no use."""
    return with_gpm(
        {1: 60.0, 2: 50.0},
        DeviceGetSamples=ScriptedError(NOT_SUPPORTED),
        DeviceGetMigMode=[1, 1],
        DeviceGetMaxMigDeviceCount=7,
        DeviceGetMigDeviceHandleByIndex=lambda _, index: (
            f"mig {index}" if index < len(instances) else ScriptedError(NOT_FOUND)
        ),
        DeviceGetUUID=lambda handle: handle.replace("mig ", "MIG-"),
        DeviceGetGpuInstanceId=lambda handle: instances[int(handle[4:])],
        GpmMigSampleGet=lambda _, instance, into: into,
        **{USE: ScriptedError(NOT_SUPPORTED)},
    )


def test_of_mig_devices_the_hardware_tells_the_use() -> None:
    api = cut(1, 2)
    one = reader(api)
    one.read()
    reading = one.read()
    assert (reading.sample.util, reading.sample.profiling) == (None, {})
    assert reading.sample.processes == (ProcessSample(OWN, None, None, 2 * GIB),)
    assert reading.sample.mig.keys() == {"MIG-0", "MIG-1"}
    device = reading.sample.mig["MIG-0"]
    assert (device.util, device.profiling, device.memory_bytes) == (
        60.0,
        {"sm_active": 0.5},
        3 * GIB,
    )
    assert device.processes == (ProcessSample(OWN, 60.0, None, 2 * GIB),)
    assert {number for number, _ in api.asked("GpmMigSampleGet")} == {1, 2}
    assert reading.usage.mig == {"MIG-0": 4 * GIB, "MIG-1": 4 * GIB}


def test_compute_instances_of_one_gpu_instance_cannot_be_told_apart() -> None:
    one = reader(cut(1, 1))
    one.read()
    device = one.read().sample.mig["MIG-0"]
    assert (device.util, device.profiling) == (None, {})
    assert device.processes[0].sm is None


def test_an_instance_that_is_taken_away_gives_its_samples_back() -> None:
    api = cut(1, 2)
    one = reader(api)
    one.read()
    api.answers["DeviceGetMaxMigDeviceCount"] = 1
    assert one.read().sample.mig.keys() == {"MIG-0"}
    assert len(api.asked("GpmSampleFree")) == 2
