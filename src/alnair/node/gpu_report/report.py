"""One GPU's report: what NVML can tell, what a process of its own measured, and a profile of it."""

import asyncio
import os
import subprocess
import sys
from typing import Any, Final

import msgspec

from alnair.node.gpu_report.measuring import Measured
from alnair.node.nvml import Nvml, NvmlGpu, text
from alnair.node.vgpu import context_costs, context_probe

_PATIENCE: Final = 70.0
#: What the agent asks of NVML, with arguments beside the handle.
_ABILITIES: Final[dict[str, tuple[int, ...]]] = {
    "nvmlDeviceGetComputeRunningProcesses": (),
    "nvmlDeviceGetGraphicsRunningProcesses": (),
    "nvmlDeviceGetProcessUtilization": (0,),
    "nvmlDeviceGetUtilizationRates": (),
    "nvmlDeviceGetSupportedEventTypes": (),
    "nvmlDeviceGetAccountingMode": (),
    "nvmlDeviceGetMigMode": (),
    "nvmlDeviceGetTotalEnergyConsumption": (),
    "nvmlDeviceGetCurrentClocksEventReasons": (),
    "nvmlDeviceGetComputeMode": (),
}
_CLOCKS: Final = {"sm": 1, "memory": 2}


class GpuReport(msgspec.Struct, frozen=True):
    """What to send us of one GPU.

    Attributes:
        uuid: NVML's.
        model: Its name.
        driver: The driver's version.
        memory_bytes: As NVML has it.
        abilities: NVML's functions: "yes", or what it answers instead.
        clocks_mhz: Now and at most, by kind.
        context_bytes: Cost of a context; 0 where it is not known.
        problems: Why something is not known.
        measured: What a process measured; None: it could not.
    """

    uuid: str
    model: str
    driver: str
    memory_bytes: int
    abilities: dict[str, str]
    clocks_mhz: dict[str, int]
    context_bytes: int
    problems: tuple[str, ...]
    measured: Measured | None


def of_gpu(nvml: Nvml, gpu: NvmlGpu) -> GpuReport:
    """Look at a GPU and measure it; it takes some seconds, in which others notice little."""
    handle = nvml.handles[gpu.uuid]
    cost = asyncio.run(context_costs.probe(gpu.uuid, context_costs.PATIENCE))
    measured, problem = _measured(gpu.uuid)
    return GpuReport(
        uuid=gpu.uuid,
        model=gpu.model,
        driver=nvml.driver,
        memory_bytes=gpu.memory_bytes,
        abilities={name: _able(nvml.api, name, handle, *more) for name, more in _ABILITIES.items()},
        clocks_mhz=_clocks(nvml.api, handle),
        context_bytes=cost.bytes,
        problems=tuple(filter(None, (cost.problem, problem))),
        measured=measured,
    )


def _able(api: Any, name: str, *arguments: Any) -> str:
    try:
        getattr(api, name)(*arguments)
    except AttributeError:
        return "nvidia-ml-py does not know it"
    except api.NVMLError as error:
        # A question about what happened since then has no answer where nothing did.
        return "yes" if error.value == api.NVML_ERROR_NOT_FOUND else text(str(error))
    return "yes"


def _clocks(api: Any, handle: Any) -> dict[str, int]:
    found = {}
    for kind, number in _CLOCKS.items():
        for when, name in (("now", "ClockInfo"), ("most", "MaxClockInfo")):
            try:
                found[f"{kind} {when}"] = int(getattr(api, f"nvmlDeviceGet{name}")(handle, number))
            except api.NVMLError:
                continue
    return found


def _measured(uuid: str) -> tuple[Measured | None, str]:
    command = [sys.executable, "-m", "alnair.node.gpu_report.measuring"]
    environment = context_probe.environment(uuid, os.environ)
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, check=False, timeout=_PATIENCE
        )
        return msgspec.json.decode(done.stdout, type=Measured), ""
    except subprocess.TimeoutExpired:
        return None, f"measuring took longer than {_PATIENCE:g} s"
    except msgspec.DecodeError:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no word"]
        return None, f"measuring ended with exit {done.returncode}: {said[-1]}"


def profile(found: GpuReport, today: str) -> str:
    """A profile for the fake GPU, in the format of native/fakegpu/profiles.

    Raises:
        ValueError: It was not measured, or on the fake GPU.
    """
    it = found.measured
    if it is None or not found.context_bytes:
        raise ValueError("nothing was measured: " + "; ".join(found.problems))
    if it.is_fake:
        raise ValueError("this is the fake GPU: what it says of itself is no measurement")
    lines = [
        f"# Measured on {found.model}, driver {found.driver}, {today}, by alnair agent doctor.",
        f"# Slices of others: {it.slice_us} us; a pool grows by {it.pool_step_bytes} bytes.",
        f"name {it.name}",
        f"memory_bytes {it.total}",
        f"nvml_bytes {found.memory_bytes}",
        f"sm_count {it.sms}",
        f"context_bytes {found.context_bytes}",
        f"event_ns {it.event_pair_ns / 2:.0f}",
    ]
    most = {"clock_mhz": "sm most", "memory_clock_mhz": "memory most"}
    clocks = found.clocks_mhz
    lines += [f"{key} {clocks[kind]}" for key, kind in most.items() if kind in clocks]
    return "\n".join(lines) + "\n"
