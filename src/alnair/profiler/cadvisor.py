"""What the kubelet's page of cAdvisor tells of containers, for where control groups cannot be read.

The page is made anew every 10 to 15 s, and each sample says when it was taken: one that is read
twice is the same sample. Whose a container is, its group's path tells, as everywhere here.

Source: metrics/prometheus.go of cAdvisor, and the kubelet's `/metrics/cadvisor` (Kubernetes 1.36).
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from alnair.profiler.samples import CgroupSample, ContainerKey, NetworkSample

#: Metric → field of a sample, and what one is in its unit.
_FIELDS: Final = {
    b"container_cpu_usage_seconds_total": ("cpu_ns", 1e9),
    b"container_cpu_cfs_periods_total": ("periods", 1),
    b"container_cpu_cfs_throttled_periods_total": ("throttled_periods", 1),
    b"container_cpu_cfs_throttled_seconds_total": ("throttled_ns", 1e9),
    b"container_memory_working_set_bytes": ("memory_bytes", 1),
    b"container_memory_max_usage_bytes": ("memory_peak", 1),
    b"container_oom_events_total": ("oom_kills", 1),
    b"container_fs_reads_bytes_total": ("io_read", 1),
    b"container_fs_writes_bytes_total": ("io_write", 1),
}
_PRESSURES: Final = {
    b"container_pressure_cpu_waiting_seconds_total": "cpu",
    b"container_pressure_memory_waiting_seconds_total": "memory",
    b"container_pressure_io_waiting_seconds_total": "io",
}
_NETWORK: Final = {
    b"container_network_receive_bytes_total": "rx",
    b"container_network_transmit_bytes_total": "tx",
}
#: A line ends with the time in milliseconds since the epoch.
_LINE: Final = re.compile(
    rb"^(container_(?:cpu|memory|oom|fs|pressure|network)_\w+)\{([^\n]*)\} (\S+) (\d+)$",
    re.MULTILINE,
)
_ID: Final = re.compile(rb'(?:^|,)id="([^"]*)"')
_INTERFACE: Final = re.compile(rb'(?:^|,)interface="lo"')


class CadvisorPage(msgspec.Struct, frozen=True):
    """What was told; see `CgroupSample` and `NetworkSample`. Times are since the epoch."""

    containers: dict[ContainerKey, CgroupSample]
    networks: dict[str, NetworkSample]


def read_cadvisor(page: bytes, place: Callable[[str], tuple[str, str]]) -> CadvisorPage:
    """Read a page; what is of no pod is left out, and what is no line of these metrics.

    Args:
        page: In the text format of Prometheus.
        place: Says of a group's path whose it is: uid of the pod and id of the container, or "".
    """
    places: dict[bytes, tuple[str, str]] = {}
    numbers: dict[ContainerKey, dict[str, int]] = {}
    pressures: dict[ContainerKey, dict[str, int]] = {}
    networks: dict[str, dict[str, int]] = {}
    times: dict[ContainerKey | str, float] = {}
    for name, labels, value, stamp in _LINE.findall(page):
        if (found := _ID.search(labels)) is None:
            continue
        if found[1] not in places:
            places[found[1]] = place(found[1].decode(errors="replace"))
        pod, container = places[found[1]]
        at, amount = int(stamp) / 1000, _number(value)
        if not pod or amount is None:
            continue
        if (way := _NETWORK.get(name)) is not None:
            if not _INTERFACE.search(labels):
                sums = networks.setdefault(pod, {})
                sums[way] = sums.get(way, 0) + int(amount)
                times[pod] = max(at, times.get(pod, 0.0))
            continue
        key = ContainerKey(pod, container)
        if container and (pressure := _PRESSURES.get(name)) is not None:
            pressures.setdefault(key, {})[pressure] = int(amount * 1e6)
        elif container and name in _FIELDS:
            field, unit = _FIELDS[name]
            of_one = numbers.setdefault(key, {})
            # Disks have a line each; of the others there is one.
            of_one[field] = of_one.get(field, 0) + round(amount * unit)
            if field == "cpu_ns":
                times[key] = at
    return CadvisorPage(
        {
            key: CgroupSample(times[key], pressure=pressures.get(key, {}), **fields)
            for key, fields in numbers.items()
            if key in times
        },
        {
            pod: NetworkSample(times[pod], sums["rx"], sums["tx"])
            for pod, sums in networks.items()
            if sums.keys() == {"rx", "tx"}
        },
    )


def _number(text: bytes) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found < 1e18 else None
