"""Which file systems are where: control groups, and the agent's folder."""

from pathlib import Path
from typing import Final

from alnair.doctor.finding import Finding, error, ok, warning
from alnair.doctor.node.look import NodeLook

_CGROUPS: Final = Path("/sys/fs/cgroup")


def cgroups(look: NodeLook) -> list[Finding]:
    """Control groups are there: by them the kernel says which container a process is of."""
    kinds = {kind for place, kind in _mounts(look) if place.is_relative_to(_CGROUPS)}
    if "cgroup2" in kinds and "cgroup" not in kinds:
        return [ok("control groups are of version 2", str(_CGROUPS))]
    if kinds & {"cgroup", "cgroup2"}:
        text = "control groups are of version 1, which kubelets from 1.35 on refuse by default"
        fix = "grubby --update-kernel=ALL --args=systemd.unified_cgroup_hierarchy=1"
        return [warning(text, str(_CGROUPS), fix=fix)]
    text = "no control groups are mounted: processes cannot be told apart by container"
    return [error(text, str(_CGROUPS), fix=f"mount --types cgroup2 none {_CGROUPS}")]


def agent_folder(look: NodeLook) -> list[Finding]:
    """The agent's folder is on a tmpfs: pages of limits and counters are read at every launch."""
    where = str(look.folder)
    mounts = [(place, kind) for place, kind in _mounts(look) if look.folder.is_relative_to(place)]
    # The longest is the one in force; of two at one place the later.
    kind = max(enumerate(mounts), key=lambda one: (len(one[1][0].parts), one[0]))[1][1]
    if kind == "tmpfs":
        return [ok("on a tmpfs", where)]
    text = f"on {kind}, not on a tmpfs: what slices count is written to a disk, and outlives a boot"
    return [warning(text, where, fix=f"mount --types tmpfs --options mode=0755 tmpfs {where}")]


def _mounts(look: NodeLook) -> list[tuple[Path, str]]:
    """Places and types of file systems, in the order of mounting; `/` at least."""
    found = [(Path("/"), "an unknown file system")]
    for line in (look.proc / "self/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split(" ")
        found.append((Path(place.replace("\\040", " ")), kind))
    return found
