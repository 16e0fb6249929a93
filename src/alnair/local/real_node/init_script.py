"""The node's PID 1, a shell script: sets up the node's own view of the machine, then waits."""

import shlex
import sysconfig
from pathlib import Path

from alnair.local.real_node.settings import NodeSettings

#: In the node's own /run: gone with the node.
READY = "/run/alnair-node-ready"
#: Has the fake GPU's state, and a view of the node's processes: see native/fakegpu/state/state.h.
FAKE_GPU = "/run/fakegpu"
#: What the kubelet wants of the kernel. It would set these for the whole machine; it finds files
#: with its values instead.
SYSCTLS = {
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}


def driver_libraries() -> Path:
    """Where a GPU driver's libraries are on this machine: its first folder of libraries."""
    multiarch = sysconfig.get_config_var("MULTIARCH")
    debian = Path("/usr/lib", multiarch or "none")
    return debian if debian.is_dir() else Path("/usr/lib64")


def text(node: NodeSettings) -> str:
    """The script, for a shell that is PID 1 of new mount, pid, net, ipc and uts namespaces."""
    libraries = driver_libraries()
    folder = shlex.quote(str(node.folder))
    own = "\n".join(
        f"mount --bind {folder}/sysctl/{name.replace('/', '.')} /proc/sys/{name}"
        for name in SYSCTLS
    )
    return f"""\
# PID 1 of the real node of an Alnair cluster. All below is seen by the node alone.
set -eu
mount --make-rprivate /
mount --make-rshared /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 node-run /run
mount -t tmpfs -o mode=755 node-lib /var/lib
mount -t tmpfs -o mode=755 node-log /var/log
mkdir -p /run/lock {FAKE_GPU}/proc /var/lib/kubelet
mount --bind {shlex.quote(str(node.kubelet))} /var/lib/kubelet
# Devices of a driver are seen by all; a process tells by this what the node calls it.
chmod 755 {FAKE_GPU}
mount -t proc -o ro proc {FAKE_GPU}/proc
mount -t overlay -o lowerdir={shlex.quote(str(node.driver))}:{libraries} driver {libraries}
# The kubelet would change these for the whole machine.
{own}
echo {node.name} >/proc/sys/kernel/hostname
: >{READY}
# Orphans of containers become children of this process: each wait takes note of those that ended.
while :; do
    sleep 3600 &
    wait $!
done
"""


def command(script: Path) -> list[str]:
    """The command that makes the namespaces; whoever ends it ends the whole node."""
    return [
        "unshare",
        "--mount",
        "--pid",
        "--net",
        "--ipc",
        "--uts",
        "--fork",
        "--kill-child=SIGKILL",
        "--propagation=private",
        "/bin/sh",
        str(script),
    ]
