"""The files of a control group, v1 and v2, as numbers.

Units are those of `alnair.profiler.samples`. What a file does not say is absent.

Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/{cpuacct,memory,blkio-controller}.rst and
accounting/psi.rst of the Linux kernel.
"""

from collections.abc import Callable, Mapping
from typing import Final

#: Fields of `CgroupSample`, and `pressure.RESOURCE`.
Numbers = dict[str, int]
_PRESSURES: Final = ("cpu", "memory", "io")


def after(text: bytes, key: bytes) -> int | None:
    """Return the number behind a key at the begin of a line; None if there is none."""
    if text.startswith(key + b" "):
        start = len(key) + 1
    else:
        found = text.find(b"\n" + key + b" ")
        if found < 0:
            return None
        start = found + len(key) + 2
    end = text.find(b"\n", start)
    number = text[start:] if end < 0 else text[start:end]
    return int(number) if number.isdigit() else None


def number(text: bytes) -> int | None:
    """Read a file of one number."""
    text = text.strip()
    return int(text) if text.isdigit() else None


def _cpu_v2(text: bytes, found: Numbers) -> None:
    _put(found, "cpu_ns", after(text, b"usage_usec"), 1000)
    if after(text, b"nr_periods"):
        _put(found, "periods", after(text, b"nr_periods"))
        _put(found, "throttled_periods", after(text, b"nr_throttled"))
        _put(found, "throttled_ns", after(text, b"throttled_usec"), 1000)


def _cpu_v1(text: bytes, found: Numbers) -> None:
    if after(text, b"nr_periods"):
        _put(found, "periods", after(text, b"nr_periods"))
        _put(found, "throttled_periods", after(text, b"nr_throttled"))
        _put(found, "throttled_ns", after(text, b"throttled_time"))


def _inactive(key: bytes) -> Callable[[bytes, Numbers], None]:
    def take(text: bytes, found: Numbers) -> None:
        found["inactive"] = after(text, key) or 0

    return take


def working_set(numbers: Numbers) -> None:
    """Put `memory_bytes` in place of what is used and what of it is inactive, where both are known.

    It is what the kubelet reckons with; the two are not of one moment.
    """
    used, inactive = numbers.pop("used", None), numbers.pop("inactive", None)
    if used is not None and inactive is not None:
        numbers["memory_bytes"] = max(0, used - inactive)


def _io_v2(text: bytes, found: Numbers) -> None:
    read = written = 0
    for line in text.splitlines():
        for word in line.split()[1:]:
            if word.startswith(b"rbytes="):
                read += int(word[7:])
            elif word.startswith(b"wbytes="):
                written += int(word[7:])
    found["io_read"], found["io_write"] = read, written


def _io_v1(text: bytes, found: Numbers) -> None:
    read = written = 0
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] == b"Read":
            read += int(words[2])
        elif len(words) == 3 and words[1] == b"Write":
            written += int(words[2])
    found["io_read"], found["io_write"] = read, written


def _pressure(resource: str) -> Callable[[bytes, Numbers], None]:
    def take(text: bytes, found: Numbers) -> None:
        # The line is that of some tasks, with averages and then the total; that of all comes next.
        start = text.find(b"total=")
        if text.startswith(b"some ") and start >= 0:
            _put(found, f"pressure.{resource}", number(text[start + 6 :].split(b"\n", 1)[0]))

    return take


def _one(field: str) -> Callable[[bytes, Numbers], None]:
    def take(text: bytes, found: Numbers) -> None:
        _put(found, field, number(text))

    return take


def _keyed(field: str, key: bytes) -> Callable[[bytes, Numbers], None]:
    def take(text: bytes, found: Numbers) -> None:
        _put(found, field, after(text, key))

    return take


def _put(found: Numbers, field: str, value: int | None, factor: int = 1) -> None:
    if value is not None:
        found[field] = value * factor


Reading = Callable[[bytes, Numbers], None]
#: Hierarchy → file → what takes its text; of v2 there is one hierarchy, "".
V2: Final[Mapping[str, Mapping[str, Reading]]] = {
    "": {
        "cpu.stat": _cpu_v2,
        "memory.current": _one("used"),
        "memory.stat": _inactive(b"inactive_file"),
        "memory.peak": _one("memory_peak"),
        "memory.events": _keyed("oom_kills", b"oom_kill"),
        "io.stat": _io_v2,
        **{f"{one}.pressure": _pressure(one) for one in _PRESSURES},
    }
}
V1: Final[Mapping[str, Mapping[str, Reading]]] = {
    "cpuacct": {"cpuacct.usage": _one("cpu_ns")},
    "cpu": {
        "cpu.stat": _cpu_v1,
        # Kernels of Red Hat and Ubuntu have them in v1, too.
        "cpu.pressure": _pressure("cpu"),
    },
    "memory": {
        "memory.usage_in_bytes": _one("used"),
        "memory.stat": _inactive(b"total_inactive_file"),
        "memory.max_usage_in_bytes": _one("memory_peak"),
        "memory.oom_control": _keyed("oom_kills", b"oom_kill"),
    },
    "blkio": {"blkio.throttle.io_service_bytes_recursive": _io_v1},
}
#: Files that are read less often: the largest value so far, and what happens to few containers.
SELDOM: Final = frozenset(
    {"memory.peak", "memory.events", "memory.max_usage_in_bytes", "memory.oom_control"}
)
