"""The openb trace format: a list of GPU nodes and a list of pods, each a CSV file.

Format: `hkust-adsl/kubernetes-scheduler-simulator`, data/csv (Weng et al., USENIX ATC'23). One
GPU is 1,000 milli; a pod with one GPU and less than that shares it.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from alnair.model.gpu_models import MODELS
from alnair.model.plurals import counted
from alnair.traces.csv_table import Problem, Row, rows

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
#: When pods came and went; the multigpu lists lack these.
TIME_COLUMNS: Final = ("creation_time", "deletion_time", "scheduled_time")
#: Some lists lack these.
POD_COLUMNS_OPTIONAL: Final = (
    "gpu_spec",
    "qos",
    "pod_phase",
    *TIME_COLUMNS,
)
#: Milli of a whole GPU.
WHOLE: Final = 1000
#: More GPUs than any machine has: a number above it is a mistake.
_MOST_GPUS: Final = 64


class TraceNode(msgspec.Struct, frozen=True, gc=False):
    """A node of the trace; `model` is empty without GPUs."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


class TracePod(msgspec.Struct, frozen=True, gc=False):
    """A pod of the trace: `gpus` GPUs with `gpu_milli` thousandths of each."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    #: Models that will do, sorted; empty = any.
    models: tuple[str, ...] = ()
    #: The column as it was written: the benchmark's classes tell texts apart, not sets.
    gpu_spec: str = ""

    @property
    def demand(self) -> int:
        """Milli-GPUs in all."""
        return self.gpus * self.gpu_milli


class PodTimes(msgspec.Struct, frozen=True, gc=False):
    """When a pod of the trace came and went, seconds since the trace's begin.

    `scheduled` is None if it never got a node.
    """

    created: int
    scheduled: int | None
    deleted: int


def read_nodes(lines: Iterable[str], source: str, problems: list[Problem]) -> tuple[TraceNode, ...]:
    """Read a node list.

    Args:
        lines: The text of the file.
        source: Name of the file.
        problems: Filled with all that is wrong; the result is of use only if nothing was added.
    """
    seen: dict[str, int] = {}
    return tuple(
        _node(row, seen) for row in rows(lines, source, required=NODE_COLUMNS, problems=problems)
    )


def _node(row: Row, seen: dict[str, int]) -> TraceNode:
    gpus = row.number("gpu", most=_MOST_GPUS)
    model = row.text("model")
    if gpus and model not in MODELS:
        row.wrong("model", _unknown(model))
    if model and not gpus and row.text("gpu") == "0":
        row.wrong("model", f"0 GPUs with the model {model!r}: leave it empty, or say how many")
    return TraceNode(
        name=row.name("sn", seen),
        cpu_milli=row.number("cpu_milli", least=1),
        memory_mib=row.number("memory_mib", least=1),
        gpus=gpus,
        model=model,
    )


def read_pods(lines: Iterable[str], source: str, problems: list[Problem]) -> tuple[TracePod, ...]:
    """Read a pod list; arguments as for `read_nodes`."""
    seen: dict[str, int] = {}
    table = rows(
        lines, source, required=POD_COLUMNS, optional=POD_COLUMNS_OPTIONAL, problems=problems
    )
    return tuple(_pod(row, seen) for row in table)


def read_timed_pods(
    lines: Iterable[str], source: str, problems: list[Problem]
) -> tuple[tuple[TracePod, PodTimes], ...]:
    """Read a pod list with the times; arguments as for `read_nodes`."""
    seen: dict[str, int] = {}
    table = rows(
        lines,
        source,
        required=(*POD_COLUMNS, *TIME_COLUMNS),
        optional=POD_COLUMNS_OPTIONAL,
        problems=problems,
    )
    return tuple((_pod(row, seen), _times(row)) for row in table)


def _times(row: Row) -> PodTimes:
    created = row.number("creation_time")
    deleted = row.number("deletion_time")
    scheduled = row.number("scheduled_time") if row.text("scheduled_time") else None
    if deleted < created:
        row.wrong(
            "deletion_time", f"{deleted} is before the pod's creation at {created}: mend either"
        )
    elif scheduled is not None and not created <= scheduled <= deleted:
        row.wrong(
            "scheduled_time",
            f"{scheduled} is not between the pod's creation at {created} and its deletion at "
            f"{deleted}: mend it, or leave it empty if the pod never got a node",
        )
    return PodTimes(created, scheduled, deleted)


def _pod(row: Row, seen: dict[str, int]) -> TracePod:
    gpus = row.number("num_gpu", most=_MOST_GPUS)
    milli = row.number("gpu_milli")
    spec = row.text("gpu_spec")
    models = tuple(sorted({model.strip() for model in spec.split("|")})) if spec else ()
    _check_share(row, gpus, milli)
    for model in models:
        if model not in MODELS:
            row.wrong("gpu_spec", _unknown(model))
    if models and row.text("num_gpu") == "0":
        row.wrong("gpu_spec", f"0 GPUs with the model {spec!r}: leave it empty, or ask for GPUs")
    return TracePod(
        name=row.name("name", seen),
        cpu_milli=row.number("cpu_milli"),
        memory_mib=row.number("memory_mib"),
        gpus=gpus,
        gpu_milli=milli,
        models=models,
        gpu_spec=spec,
    )


def _check_share(row: Row, gpus: int, milli: int) -> None:
    if milli > WHOLE:
        row.wrong(
            "gpu_milli",
            f"asks for {milli / 10:g} % of a GPU: {WHOLE} is a whole one; "
            "for more than one GPU raise num_gpu",
        )
    elif not gpus and milli and row.text("num_gpu") == "0":
        row.wrong("gpu_milli", f"0 GPUs with {milli} milli of each: write 0, or ask for a GPU")
    elif gpus and row.text("gpu_milli") == "0":
        row.wrong("gpu_milli", f"{counted(gpus, 'GPU')} with 0 milli of each: write 1 to {WHOLE}")
    elif gpus > 1 and 0 < milli < WHOLE:
        row.wrong(
            "gpu_milli",
            f"{gpus} GPUs with {milli} milli of each: only one GPU can be shared, "
            f"several are whole ({WHOLE})",
        )


def _unknown(model: str) -> str:
    return f"GPU model {model!r} is not known; known are {', '.join(MODELS)}"
