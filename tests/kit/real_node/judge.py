"""What must hold of pods on a real node, judged from what is seen of them from outside.

Four witnesses, and none is asked about itself: the pods of the API server, the driver's books, the
limits pages on the node, and what the programs in the containers say.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from alnair.kube.resources import Manifest
from alnair.model import names
from alnair.node.vgpu.pages import abi
from kit.real_node.outages import second
from kit.real_node.tenants import Tenant

_MIB = 1 << 20


class Judge:
    """Collects faults, each once.

    Args:
        gpus: Bytes by UUID.
    """

    def __init__(self, gpus: Mapping[str, int]) -> None:
        self.gpus = gpus
        self.faults: dict[str, str] = {}
        self.judged = dict.fromkeys(("pages", "programs", "accounts", "instants"), 0)

    def fault(self, what: str, text: str) -> None:
        """Take note of one; `what` tells it from others."""
        self.faults.setdefault(what, text)

    def page(self, tenant: Tenant, container: str, found: Manifest, folder: Path) -> None:
        """The limits page of a container with a slice says what its spec says."""
        due = tenant.due[container]
        try:
            page = abi.Limits.from_buffer_copy((folder / "limits").read_bytes())
        except (OSError, ValueError):
            return  # it comes or goes this moment
        if page.magic != abi.LIMITS_MAGIC:
            return  # it is being made: until that is written nobody takes it for a page
        said = [
            (_uuid(bytes(row.uuid)), row.memory_limit, row.compute_percent)
            for row in page.device[: page.n_devices]
        ]
        wanted = [
            (uuid, due.memory_mib * _MIB, due.compute) for uuid in sorted(given(found)[container])
        ]
        self.judged["pages"] += 1
        # Without a share asked for it has what others leave, which is no limit.
        if [(u, m, c if due.compute else 0) for u, m, c in sorted(said)] != wanted:
            self.fault(f"page {tenant.name}/{container}", f"its page says {said}, due is {wanted}")

    def program(self, tenant: Tenant, container: str, found: Manifest, said: str) -> None:
        """A program sees the GPUs that its container is assigned, with its limit as their size."""
        due, where = tenant.due[container], f"program {tenant.name}/{container}"
        try:
            seen = msgspec.json.decode(said.splitlines()[0])["gpus"]
        except (msgspec.DecodeError, LookupError):
            self.fault(where, f"it says {said[:300]!r}")
            return
        size = {
            uuid: due.memory_mib or int(self.gpus[uuid] / _MIB)
            for uuid in given(found).get(container, ())
        }
        self.judged["programs"] += 1
        if {uuid: int(one["mib"]) for uuid, one in seen.items()} != size:
            self.fault(where, f"it sees {seen}, due is {size}")
        if not all(one["refused"] for one in seen.values()):
            self.fault(where, f"it was given more memory than {size}")

    def account(
        self, tenant: Tenant, found: Manifest, books: Mapping[str, Mapping[str, Mapping[str, int]]]
    ) -> None:
        """The driver has a container's memory and its kernels on its own GPUs alone."""
        for container, due in tenant.due.items():
            own = given(found).get(container, set())
            for uuid, row in books.get(due.tag, {}).items():
                where = f"account {tenant.name}/{container} {uuid}"
                self.judged["accounts"] += 1
                if uuid not in own and (row["peak"] or row["kernels"]):
                    self.fault(where, f"it was on a GPU that is not its own: {row}, own {own}")
                if due.memory_mib and row["over"]:
                    self.fault(where, f"it had more than {due.memory_mib} MiB: {row}")

    def instant(
        self,
        tenants: Mapping[str, Tenant],
        pods: Mapping[str, Manifest],
        books: Mapping[str, Mapping[str, Mapping[str, int]]],
        processes: Mapping[str, Mapping[str, int]],
    ) -> None:
        """At this instant no GPU is promised twice to those who are on it.

        Args:
            tenants: By name of the pod.
            pods: By name, as the API server has them, or had them last.
            books: The driver's accounts by tag.
            processes: What NVML says, by uid of the pod.
        """
        self.judged["instants"] += 1
        on: dict[str, list[tuple[str, int, int]]] = {}
        for name, tenant in tenants.items():
            for container, due in tenant.due.items():
                for uuid, row in books.get(due.tag, {}).items():
                    if row["used"]:
                        mib = due.memory_mib or int(self.gpus[uuid] / _MIB)
                        percent = due.compute if due.memory_mib else 100
                        on.setdefault(uuid, []).append((f"{name}/{container}", mib, percent))
        for uuid, there in on.items():
            memory, compute = sum(one[1] for one in there), sum(one[2] for one in there)
            if memory * _MIB > self.gpus[uuid] or compute > 100:
                self.fault(f"promised {uuid} {sorted(one[0] for one in there)}", f"{there}")
        by_uid = {pod["metadata"]["uid"]: pod for pod in pods.values()}
        for uid, uses in processes.items():
            pod = by_uid.get(uid)
            if pod is None:
                self.fault(f"process of {uid}", f"it is of no pod of ours, and uses {uses}")
                continue
            own = {uuid for uuids in given(pod).values() for uuid in uuids}
            for uuid in uses.keys() - own:
                name = pod["metadata"]["name"]
                self.fault(f"process of {name}", f"NVML has it on {uuid}, own are {own}")


def given(pod: Manifest) -> dict[str, set[str]]:
    """The GPUs of each container by the pod's assignment."""
    text = pod["metadata"].get("annotations", {}).get(names.GPU_ASSIGNMENT)
    if not text:
        return {}
    containers = msgspec.json.decode(text)["containers"]
    return {name: {part["uuid"] for part in parts} for name, parts in containers.items()}


def states(pod: Manifest) -> dict[str, dict[str, Any]]:
    """The state of each container that has one, by name."""
    status = pod["status"]
    listed = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    return {one["name"]: one["state"] for one in listed}


def cut_off(pod: Manifest) -> dict[frozenset[str], float]:
    """Programs of which the end may be why it failed, with the second of it; 0: not known.

    A kubelet or a containerd that ends while a container is being started makes a StartError of
    it; a containerd that starts again says Unknown and 255 of a container that it finds half made,
    or of which the end came while it was away.
    """
    found: dict[frozenset[str], float] = {}
    for one in states(pod).values():
        end = one.get("terminated", {})
        reason, text = end.get("reason"), end.get("message", "")
        if reason == "Unknown" and end["exitCode"] == 255:
            found[frozenset({"containerd"})] = second(end.get("finishedAt"))
        elif reason == "StartError" and ("context canceled" in text or "Unavailable" in text):
            found[frozenset({"kubelet", "containerd"})] = second(end.get("finishedAt"))
    return found


def _uuid(raw: bytes) -> str:
    text = raw.hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
