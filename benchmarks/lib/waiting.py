"""How long this thread was ready to run and had no processor: on a busy machine, most of a delay.

Source: Documentation/scheduler/sched-stats.rst of the Linux kernel: the second number.
"""

from pathlib import Path


def waited_s() -> float:
    """Return the seconds so far."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
