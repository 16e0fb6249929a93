"""What a real node could leave on the machine: everything that is of the kernel and of no file.

Tests of others run at the same time, so things that have names of their own are looked for by name.
"""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Set as AbstractSet
from pathlib import Path

import psutil

from alnair.local.components.processes import is_alive

#: Of these, the kubelet would set those of `kernel` and `vm` for the whole machine.
_SYSCTLS = (
    *("kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/hostname"),
    *("kernel/keys/root_maxbytes", "vm/overcommit_memory", "vm/panic_on_oom"),
    *("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"),
)
_FOLDERS = ("/run", "/var/lib", "/var/log", "/etc", "/opt", "/mnt")
#: Groups of kubelets, container runtimes and ourselves.
_GROUPS = re.compile(r"/(alnair-|kube|cri-|containerd|runc|system\.slice)[^/]*$")


def traces() -> dict[str, list[str]]:
    """Mounts, control groups, network, packet rules, sysctls, and folders that are everybody's."""
    groups = [folder for folder, _, _ in os.walk("/sys/fs/cgroup")]
    found = {
        "mounts": Path("/proc/self/mounts").read_text().splitlines(),
        "control groups": [group for group in groups if _GROUPS.search(group)],
        "links": _said("ip", "-oneline", "link", "show"),
        "addresses": _said("ip", "-brief", "address", "show"),
        "routes": _said("ip", "-4", "route", "show", "table", "all"),
        "nftables": _said("nft", "list", "ruleset"),
        "iptables": [line for line in _said("iptables-save") if line.startswith(("-A", ":"))],
        "sysctls": [f"{name} {Path('/proc/sys', name).read_text()}" for name in _SYSCTLS],
        "folders": [str(path) for folder in _FOLDERS for path in Path(folder).iterdir()],
    }
    return {what: sorted(lines) for what, lines in found.items()}


def namespaces(process: int | str) -> frozenset[str]:
    """The namespaces of a process that are not those of this one; none when it is gone."""

    def of(process: int | str) -> set[str]:
        found = set()
        for kind in ("mnt", "pid", "net", "ipc", "uts"):
            with contextlib.suppress(OSError):
                found.add(str(Path(f"/proc/{process}/ns/{kind}").readlink()))
        return found

    return frozenset(of(process) - of("self"))


def processes_in(wanted: AbstractSet[str]) -> list[int]:
    """The processes that live in any of these namespaces; one that waits to be reaped does not."""
    return [
        process.pid
        for process in psutil.process_iter()
        if namespaces(process.pid) & wanted and is_alive(process)
    ]


def _said(*command: str) -> list[str]:
    if not shutil.which(command[0]):
        return []
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.splitlines()
