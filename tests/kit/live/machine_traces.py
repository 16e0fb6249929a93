"""What a real node could leave on the machine: everything that is of the kernel and of no file."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

#: Of these, the kubelet would set those of `kernel` and `vm` for the whole machine.
_SYSCTLS = (
    *("kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/hostname"),
    *("kernel/keys/root_maxbytes", "vm/overcommit_memory", "vm/panic_on_oom"),
    *("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"),
)
_FOLDERS = ("/run", "/var/lib", "/var/log", "/etc", "/opt", "/dev")


def traces() -> dict[str, list[str]]:
    """Mounts, control groups, namespaces, network and packet rules, sysctls, folders of others."""
    found = {
        "mounts": Path("/proc/self/mounts").read_text().splitlines(),
        "control groups": [folder for folder, _, _ in os.walk("/sys/fs/cgroup")],
        "namespaces": _namespaces(),
        "links": _said("ip", "-oneline", "link", "show"),
        "addresses": _said("ip", "-brief", "address", "show"),
        "routes": _said("ip", "-4", "route", "show", "table", "all"),
        "nftables": _said("nft", "list", "ruleset"),
        "iptables": [line for line in _said("iptables-save") if line.startswith(("-A", ":"))],
        "sysctls": [f"{name} {Path('/proc/sys', name).read_text()}" for name in _SYSCTLS],
        "folders": [str(path) for folder in _FOLDERS for path in Path(folder).iterdir()],
    }
    return {what: sorted(lines) for what, lines in found.items()}


def _namespaces() -> list[str]:
    """Of kinds that nobody else is likely to make meanwhile, by any process."""

    def all_of(kind: str) -> Iterator[str]:
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                yield str((process / "ns" / kind).readlink())

    return sorted({one for kind in ("pid", "net", "uts", "ipc") for one in all_of(kind)})


def _said(*command: str) -> list[str]:
    if not shutil.which(command[0]):
        return []
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.splitlines()
