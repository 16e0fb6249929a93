"""What a benchmark says of the machine it ran on."""

import os
import platform
from pathlib import Path


def describe() -> str:
    """Processors, system, Python, and how busy the machine is with all that runs on it."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        if lines:
            model = f"{len(lines)} x {lines[0].partition(':')[2].strip()}"
    load = "/".join(f"{part:.1f}" for part in os.getloadavg())
    return f"{model}, {platform.system()}, Python {platform.python_version()}, load {load}"
