"""`alnair agent doctor`: what this node's GPUs and driver are like, measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from alnair.cli.failures import expected
from alnair.cli.json_output import json_option, write_json
from alnair.model.plurals import counted

if TYPE_CHECKING:
    from alnair.node.gpu_report.measuring import Measured
    from alnair.node.gpu_report.report import GpuReport


def doctor(
    gpu: Annotated[int, typer.Option(metavar="INDEX", min=0, help="Which GPU.")] = 0,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a profile for the fake GPU, with date and model."),
    ] = None,
    json: Annotated[bool, json_option("what to send us")] = False,
) -> None:
    """Measure a GPU and its driver: functions, abilities, costs, clocks; needs no agent.

    It makes contexts and small kernels for some seconds. What to send us: the JSON.

    Examples:
      alnair agent doctor
      alnair agent doctor --json > gpu.json
      alnair agent doctor --profile h200-measured
    """
    import contextlib
    import datetime as dt

    from alnair.node.gpu_report import report
    from alnair.node.nvml import Nvml, NvmlError

    with expected(NvmlError, ValueError, OSError, prefix="error: "):
        with contextlib.closing(Nvml.open()) as nvml:
            found = next((one for one in nvml.gpus if one.index == gpu), None)
            if found is None:
                raise ValueError(
                    f"--gpu {gpu}: the driver knows {counted(len(nvml.gpus), 'GPU')}, from 0"
                )
            told = report.of_gpu(nvml, found)
        today = dt.datetime.now(dt.UTC).date().isoformat()
        if profile is not None:
            profile.write_text(report.profile(told, today))
    if json:
        write_json({"date": today, **_plain(told)})
        return
    for name, value in _lines(told):
        typer.echo(f"{name:<20} {value}")
    typer.echo("\nto send us: alnair agent doctor --json > gpu.json")


def _plain(told: "GpuReport") -> dict[str, object]:
    import msgspec

    return dict(msgspec.to_builtins(told))


def _beyond(it: "Measured") -> str:
    """What memory of the host is like, that slices may have beyond their own."""
    if not it.host_copy_gb_s:
        return "none in memory of the host: slices cannot go beyond theirs"
    came = f", of which {it.host_on_gpu_bytes} B came to the GPU" if it.host_on_gpu_bytes else ""
    return f"{it.host_copy_gb_s:g} in memory of the host{came}"


def _lines(told: "GpuReport") -> list[tuple[str, object]]:
    lines: list[tuple[str, object]] = [
        ("GPU", f"{told.model} ({told.uuid})"),
        ("driver", told.driver),
        ("context", f"{told.context_bytes / 2**20:.0f} MiB"),
        ("clocks, MHz", ", ".join(f"{kind} {mhz}" for kind, mhz in told.clocks_mhz.items())),
    ]
    lacking = [f"{name}: {said}" for name, said in told.abilities.items() if said != "yes"]
    lines.append(("NVML lacks", "; ".join(lacking) or "nothing that the agent asks"))
    if (it := told.measured) is not None:
        known = it.entries
        lines += [
            ("driver's file", f"{it.library}, CUDA {it.cuda}"),
            ("functions", f"{known.exported} exported, {known.handed_out} names handed out"),
            ("missing", ", ".join(known.missing) or "none"),
            ("unhooked, unknown", ", ".join(known.unhooked) or known.problem or "none"),
            ("pair of events", f"{it.event_pair_ns:.0f} ns"),
            ("slice of another", f"{it.slice_us:.0f} us"),
            ("block, pool step", f"{it.block_bytes} B, {it.pool_step_bytes} B"),
            ("copies", f"{it.copy_gb_s:g} GB/s, {_beyond(it)}"),
        ]
    return [*lines, *(("not known", problem) for problem in told.problems)]
