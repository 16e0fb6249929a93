"""What dcgm-exporter tells of GPUs, joined by the pods that hold them: an optional source.

Names of fields are DCGM's (`DCGM_FI_*`), labels are dcgm-exporter's: `UUID`, `GPU_I_ID` of a MIG
instance, and with its Kubernetes mapping `namespace`, `pod`, `container`. `DCGM_FI_PROF_PCIE_*` and
`DCGM_FI_PROF_NVLINK_*` are rates, although it declares them as counters.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from alnair.model import usage
from alnair.profiler.pods.rates import Figures
from alnair.profiler.samples import GpuSample

_LINE: Final = re.compile(
    r'(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>(?:[^"}]|"(?:\\.|[^"\\])*")*)\})?'
    r"\s+(?P<value>\S+)(?:\s+-?\d+)?"
)
_LABEL: Final = re.compile(r'\s*(\w+)="((?:\\.|[^"\\])*)"\s*(?:,|$)')
_ESCAPE: Final = re.compile(r"\\(.)")
_MIB: Final = 1 << 20
#: From here on values are DCGM's blanks, which mean that there is none.
_BLANK: Final = 1e18
#: Field → name in a sample, and what one is in the sample's unit.
_FIELDS: Final = {
    "DCGM_FI_DEV_GPU_UTIL": ("util", 1.0),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("memory_copy", 1.0),
    "DCGM_FI_DEV_POWER_USAGE": ("power_w", 1.0),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature_c", 1.0),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_j", 1e-3),
}
_FB_USED: Final = "DCGM_FI_DEV_FB_USED"
_FB_ALL: Final = (_FB_USED, "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED")
_PROFILING: Final = {
    "DCGM_FI_PROF_SM_ACTIVE": "sm_active",
    "DCGM_FI_PROF_SM_OCCUPANCY": "sm_occupancy",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "tensor_active",
    "DCGM_FI_PROF_DRAM_ACTIVE": "dram_active",
}
#: Bytes each second → metric.
_LINKS: Final = {
    "DCGM_FI_PROF_PCIE_RX_BYTES": usage.PCIE_RX_MIB_S,
    "DCGM_FI_PROF_PCIE_TX_BYTES": usage.PCIE_TX_MIB_S,
    "DCGM_FI_PROF_NVLINK_RX_BYTES": usage.NVLINK_RX_MIB_S,
    "DCGM_FI_PROF_NVLINK_TX_BYTES": usage.NVLINK_TX_MIB_S,
}


class Holder(msgspec.Struct, frozen=True, order=True):
    """A container that holds a GPU; all empty for a GPU that none holds."""

    namespace: str = ""
    pod: str = ""
    container: str = ""


class DcgmSample(msgspec.Struct, frozen=True):
    """What is told of a GPU, or of a part of it, for one holder.

    Attributes:
        uuid: Of the GPU.
        instance: Id of the GPU instance of MIG, or "".
        holder: Whose it is.
        sample: Its figures, and those that are not told None.
        is_shared: Whether others hold it, too. Then figures are the GPU's and not the holder's, but
            where dcgm-exporter runs with --kubernetes-virtual-gpus, and then two of them only.
        links: What goes over its links, by the metrics of `alnair.model.usage`.
    """

    uuid: str
    instance: str
    holder: Holder
    sample: GpuSample
    is_shared: bool = False
    links: Figures = {}


def read_exposition(text: str, at: float) -> list[DcgmSample]:
    """Read what dcgm-exporter serves at /metrics; lines of other metrics are passed over.

    Args:
        text: In the text format of Prometheus.
        at: When it was read, seconds.

    Raises:
        ValueError: A line is not in that format; says which.
    """
    figures: dict[tuple[str, str, Holder], dict[str, float]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(_wrong(number, line))
        if not match["name"].startswith("DCGM_FI_"):
            continue
        labels = _labels(match["labels"] or "", number, line)
        try:
            value = float(match["value"])
        except ValueError:
            raise ValueError(_wrong(number, line)) from None
        uuid = labels.get("UUID", labels.get("uuid", ""))
        if not uuid or math.isnan(value) or abs(value) >= _BLANK:
            continue
        figures.setdefault((uuid, labels.get("GPU_I_ID", ""), _holder(labels)), {})[
            match["name"]
        ] = value
    holders: dict[tuple[str, str], int] = {}
    for uuid, instance, holder in figures:
        holders[uuid, instance] = holders.get((uuid, instance), 0) + bool(holder.pod)
    return [
        DcgmSample(
            uuid,
            instance,
            holder,
            _sample(found, at),
            holders[uuid, instance] > 1,
            {name: found[field] / _MIB for field, name in _LINKS.items() if field in found},
        )
        for (uuid, instance, holder), found in sorted(figures.items())
    ]


def whole_gpus(samples: Iterable[DcgmSample]) -> dict[str, DcgmSample]:
    """Return one sample of each GPU as a whole, by its UUID: profiling is the GPU's own."""
    return {one.uuid: one for one in samples if not one.instance}


def by_pod(samples: Iterable[DcgmSample]) -> dict[tuple[str, str], list[DcgmSample]]:
    """Return the samples of each pod, by (namespace, name); GPUs that nobody holds are left out."""
    found: dict[tuple[str, str], list[DcgmSample]] = {}
    for one in samples:
        if one.holder.pod:
            found.setdefault((one.holder.namespace, one.holder.pod), []).append(one)
    return found


def _wrong(number: int, line: str) -> str:
    return (
        f"line {number} is no line of Prometheus' text format: {line[:80]!r}; "
        "give what dcgm-exporter serves at /metrics, whole"
    )


def _labels(text: str, number: int, line: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise ValueError(_wrong(number, line))
        plain = _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], match[2])
        found[match[1]] = plain
        at = match.end()
    return found


def _holder(labels: Mapping[str, str]) -> Holder:
    # Older versions had longer names; Prometheus renames some where it has its own of that name.
    def label(name: str) -> str:
        names = (f"exported_{name}", name, f"pod_{name}", f"{name}_name")
        return next((labels[one] for one in names if labels.get(one)), "")

    return Holder(label("namespace"), label("pod"), label("container"))


def _sample(found: Mapping[str, float], at: float) -> GpuSample:
    plain = {name: found[field] * unit for field, (name, unit) in _FIELDS.items() if field in found}
    frame = [found[field] for field in _FB_ALL if field in found]
    return GpuSample(
        at,
        util=plain.get("util"),
        memory_copy=plain.get("memory_copy"),
        memory_bytes=int(found[_FB_USED] * _MIB) if _FB_USED in found else None,
        # Of what older versions tell, the sum is all but what the driver keeps.
        memory_total=int(sum(frame) * _MIB) if len(frame) > 1 else None,
        power_w=plain.get("power_w"),
        temperature_c=plain.get("temperature_c"),
        energy_j=plain.get("energy_j"),
        profiling={name: found[field] for field, name in _PROFILING.items() if field in found},
    )
