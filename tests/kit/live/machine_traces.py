"""What a real node could leave on the machine: everything that is of the kernel and of no file.

Tests of others run at the same time, so things that have names of their own are looked for by name;
and what has the name of another cluster's node is left out: it may come and go meanwhile.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from alnair.local.layout import Layout
from alnair.local.real_node.settings import cgroup_name, link_name

#: Of these, the kubelet would set those of `kernel` and `vm` for the whole machine.
_SYSCTLS = (
    *("kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/hostname"),
    *("kernel/keys/root_maxbytes", "vm/overcommit_memory", "vm/panic_on_oom"),
    *("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"),
)
_FOLDERS = ("/run", "/var/lib", "/var/log", "/etc", "/opt", "/mnt")
#: Where `alnair agent run`, which tests run beside, mounts in namespaces of its own. It stays,
#: empty: to remove it would take the mounts of others away.
_OF_OTHERS = Path("/run/alnair")
#: Groups of kubelets, container runtimes and ourselves.
_GROUPS = re.compile(r"/(alnair-|kube|cri-|containerd|runc|system\.slice)[^/]*$")
#: The control group of a cluster's node, or of a slice that somebody runs beside; and its link.
_ITS_NAME = re.compile(r"^/sys/fs/cgroup/.*?/(alnair-[^/]+)|\b(aln[0-9a-f]{10})")


def traces(own: Layout | None = None) -> dict[str, list[str]]:
    """Mounts, control groups, network, packet rules, sysctls, and folders that are everybody's.

    Args:
        own: The cluster whose node counts; None: there is no such node yet.
    """
    names = {link_name(own), cgroup_name(own)} if own else set()

    def counts(line: str) -> bool:
        found = _ITS_NAME.search(line)
        return found is None or (found[1] or found[2]) in names

    groups = [folder for folder, _, _ in os.walk("/sys/fs/cgroup")]
    paths = [path for folder in _FOLDERS for path in Path(folder).iterdir()]
    found = {
        "mounts": Path("/proc/self/mounts").read_text().splitlines(),
        "control groups": [group for group in groups if _GROUPS.search(group)],
        "links": _said("ip", "-oneline", "link", "show"),
        "addresses": _said("ip", "-brief", "address", "show"),
        "routes": _said("ip", "-4", "route", "show", "table", "all"),
        "nftables": _said("nft", "list", "ruleset"),
        "iptables": [line for line in _said("iptables-save") if line.startswith(("-A", ":"))],
        "sysctls": [f"{name} {Path('/proc/sys', name).read_text()}" for name in _SYSCTLS],
        "folders": [str(path) for path in paths if path != _OF_OTHERS or any(path.iterdir())],
    }
    return {what: sorted(line for line in lines if counts(line)) for what, lines in found.items()}


def _said(*command: str) -> list[str]:
    if not shutil.which(command[0]):
        return []
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.splitlines()
