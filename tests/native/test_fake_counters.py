"""What the fake GPU counts, as the real nvidia-ml-py reads it: energy, links, samples, GPM."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from native import build
from native.fake import Fake
from native.test_nvml import hold, nvml, raised, using

__all__ = ["hold", "nvml"]

MIB = 1 << 20
ALL_LINKS = 0xFFFFFFFF
COPY = ("stream s", f"copy s {64 * MIB}", "sync s")

#: Copies so many bytes from the first GPU to the second.
PEERS = """
import ctypes as c, sys
cuda, size = c.CDLL("libcuda.so.1"), c.c_size_t(int(sys.argv[1]))
contexts, places = [c.c_void_p(), c.c_void_p()], [c.c_uint64(), c.c_uint64()]
assert cuda.cuInit(0) == 0
for gpu in range(2):
    assert cuda.cuDevicePrimaryCtxRetain(c.byref(contexts[gpu]), gpu) == 0
    assert cuda.cuCtxSetCurrent(contexts[gpu]) == 0
    assert cuda.cuMemAlloc_v2(c.byref(places[gpu]), size) == 0
assert cuda.cuMemcpyPeer(places[1], contexts[1], places[0], contexts[0], size) == 0
"""


def counters(api: ModuleType, handle: Any) -> dict[str, int]:
    """PCIe and NVLink counters, bytes, and energy, millijoules; those that there are."""
    fields = {
        "energy": (api.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 0),
        "tx": (api.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0),
        "rx": (api.NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 0),
        "links": (api.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS),
    }
    values = api.nvmlDeviceGetFieldValues(handle, list(fields.values()))
    return {
        name: value.value.ullVal
        for name, value in zip(fields, values, strict=True)
        if value.nvmlReturn == api.NVML_SUCCESS
    }


def gpm(api: ModuleType, first: Any, second: Any, *metrics: int) -> list[float | None]:
    asked = api.c_nvmlGpmMetricsGet_t()
    asked.version, asked.numMetrics = api.NVML_GPM_METRICS_GET_VERSION, len(metrics)
    asked.sample1, asked.sample2 = first, second
    for at, metric in enumerate(metrics):
        asked.metrics[at].metricId = metric
    api.nvmlGpmMetricsGet(asked)
    found = asked.metrics[: len(metrics)]
    return [one.value if one.nvmlReturn == api.NVML_SUCCESS else None for one in found]


def test_bytes_over_pcie_are_counted_by_direction(nvml: ModuleType, fake: Fake) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    before = counters(nvml, handle)
    program = build.client("timed", "-l:libcuda.so.1", "-l:libfakegpu.so")
    build.checked(program, *COPY, environment=fake.environment())
    after = counters(nvml, handle)
    assert after["rx"] - before["rx"] == 64 * MIB
    assert after["tx"] == before["tx"]


def test_bytes_between_two_gpus_are_counted_at_both_ends() -> None:
    with Fake(gpus=2) as fake, using(fake) as api:
        environment = fake.environment() | {"LD_LIBRARY_PATH": str(build.PLAIN)}
        build.checked(sys.executable, "-c", PEERS, str(32 * MIB), environment=environment)
        for index, field in enumerate(
            (api.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, api.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX)
        ):
            handle = api.nvmlDeviceGetHandleByIndex(index)
            (value,) = api.nvmlDeviceGetFieldValues(handle, [(field, ALL_LINKS)])
            assert (value.nvmlReturn, value.value.ullVal) == (api.NVML_SUCCESS, 32 << 10)
            assert counters(api, handle)["rx"] == 0


def test_energy_grows_faster_while_kernels_run(nvml: ModuleType, hold: Callable[..., int]) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)

    def watts(seconds: float) -> float:
        begun, before = time.monotonic(), nvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        time.sleep(seconds)
        grown = nvml.nvmlDeviceGetTotalEnergyConsumption(handle) - before
        return float(grown / 1000 / (time.monotonic() - begun))

    idle = watts(1.0)
    hold(1, "ns_5000000")
    busy = 0.0
    for _ in range(5):  # where this machine stands still, so do the kernels
        busy = max(busy, watts(1.5))
        if busy > 0.5 * 700:
            break
    assert idle < 0.2 * 700 < 0.5 * 700 < busy


def test_what_a_gpu_lacks_says_so_in_its_own_value() -> None:
    with Fake("k80") as fake, using(fake) as api:
        handle = api.nvmlDeviceGetHandleByIndex(0)
        assert counters(api, handle) == {}
        assert raised(
            api.NVML_ERROR_NOT_SUPPORTED, lambda: api.nvmlDeviceGetTotalEnergyConsumption(handle)
        )
        assert not api.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice


def test_samples_come_once_and_oldest_first(nvml: ModuleType, hold: Callable[..., int]) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    hold(1, "ns_5000000")
    for _ in range(10):  # where this machine stands still, so do the kernels
        time.sleep(1.0)
        kind, samples = nvml.nvmlDeviceGetSamples(handle, nvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
        if max(sample.sampleValue.uiVal for sample in samples) > 50:
            break
    stamps = [sample.timeStamp for sample in samples]
    assert kind == nvml.NVML_VALUE_TYPE_UNSIGNED_INT
    assert stamps == sorted(set(stamps))
    assert max(sample.sampleValue.uiVal for sample in samples) > 50
    assert abs(stamps[-1] / 1e6 - time.time()) < 60, "of this clock, and no other"
    assert raised(
        nvml.NVML_ERROR_NOT_FOUND,
        lambda: nvml.nvmlDeviceGetSamples(
            handle, nvml.NVML_GPU_UTILIZATION_SAMPLES, stamps[-1] + 60_000_000
        ),
    )


def test_gpm_tells_of_the_time_between_two_samples(
    nvml: ModuleType, hold: Callable[..., int]
) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    assert nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice
    first, second = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
    hold(1, "ns_5000000")
    time.sleep(0.5)
    nvml.nvmlGpmSampleGet(handle, first)
    assert raised(nvml.NVML_ERROR_INVALID_ARGUMENT, lambda: gpm(nvml, first, second, 2))
    for _ in range(5):  # where this machine stands still, so do the kernels
        time.sleep(1.0)
        nvml.nvmlGpmSampleGet(handle, second)
        sm, occupancy, tensor, unknown = gpm(nvml, first, second, 2, 3, 5, 11)
        assert sm is not None
        if sm > 50:
            break
        nvml.nvmlGpmSampleGet(handle, first)
    assert occupancy is not None
    assert sm > 50
    assert occupancy == pytest.approx(sm / 2)
    assert (tensor, unknown) == (0, None)
    for sample in (first, second):
        nvml.nvmlGpmSampleFree(sample)


def test_calls_for_a_wedged_gpu_return_when_it_is_over() -> None:
    with Fake(gpus=2) as fake, using(fake) as api:
        one, two = (api.nvmlDeviceGetHandleByIndex(index) for index in range(2))
        fake.fault("wedge=1")
        asked = threading.Thread(target=lambda: api.nvmlDeviceGetMemoryInfo(two))
        asked.start()
        assert api.nvmlDeviceGetMemoryInfo(one).total
        asked.join(0.2)
        assert asked.is_alive()
        fake.fault("")
        asked.join(20)
        assert not asked.is_alive()


def test_drivers_that_were_seen_to_err_can_be_had(
    nvml: ModuleType, fake: Fake, hold: Callable[..., int]
) -> None:
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    pid = hold(1, "ns_5000000")
    for _ in range(100):  # until it has worked
        time.sleep(0.1)
        with contextlib.suppress(nvml.NVMLError):
            if any(row.smUtil for row in nvml.nvmlDeviceGetProcessUtilization(handle, 0)):
                break
    future = time.time_ns() // 1000 + 10_000_000
    fake.fault("nvml_util_none=1")
    with pytest.raises(nvml.NVMLError) as nothing:
        nvml.nvmlDeviceGetProcessUtilization(handle, future)
    assert nothing.value.value == nvml.NVML_SUCCESS
    fake.fault("nvml_util_stale=1")
    rows = nvml.nvmlDeviceGetProcessUtilization(handle, future)
    assert [row.pid for row in rows] == [pid]
    fake.fault("nvml_util_garbage=1,nvml_util_foreign=77")
    rows = nvml.nvmlDeviceGetProcessUtilization(handle, 0)
    assert {0, 77, pid} <= {row.pid for row in rows}
    assert max(row.smUtil for row in rows) > 100
    fake.fault("nvml_throttle=4")
    reasons = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    assert reasons == nvml.nvmlClocksEventReasonSwPowerCap
