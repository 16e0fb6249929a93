"""Which tiers of isolation a node can offer, why not the others, and what is promised in words.

A the driver limits memory, B the interposer limits memory and compute, C MPS bounds the SMs of a
client, D use is detected and acted upon. A node offers several at once; of memory and of compute
the strongest one holds. Sources: NVIDIA's MPS documentation of driver release 615 for A and C, and
docs/concepts/isolation.md for what B and D can and cannot stop.
"""

from enum import StrEnum

import msgspec

#: First driver release whose kernel module limits the memory of a cgroup.
MEMORY_LIMITS_DRIVER = 615


class Tier(StrEnum):
    """A tier, by its letter in labels and status."""

    DRIVER = "A"
    INTERPOSER = "B"
    MPS = "C"
    DETECT = "D"


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent saw on its node.

    Attributes:
        driver: Version of the driver, such as "615.36.01"; "" where NVML gives none.
        memory_limits: NVML's answer to the question for memory limits of GPUs that are not in MIG
            mode: "" if it has them, else why not, in words.
        cgroup_v2: Whether cgroups are mounted as version 2 only.
        mig: Whether a GPU of the node has MIG on.
        interposer: "" if the interposer is installed for containers, else why not.
        mps: "" if the operator chose MPS and its daemon is healthy, else why not.
        accounting: "" if NVML tells the memory of each process, else why not.
    """

    driver: str
    memory_limits: str = ""
    cgroup_v2: bool = True
    mig: bool = False
    interposer: str = ""
    mps: str = "not chosen"
    accounting: str = ""


class TierCheck(msgspec.Struct, frozen=True):
    """Whether a node offers one tier; `missing` says in words what it lacks, "" if it offers it."""

    tier: Tier
    missing: str

    @property
    def offered(self) -> bool:
        """Whether the node offers the tier."""
        return not self.missing


class Offer(msgspec.Struct, frozen=True):
    """What a node offers: `memory` and `compute` are the tiers that hold, None for no limit."""

    memory: Tier | None
    compute: Tier | None
    standings: tuple[TierCheck, ...]

    @property
    def label(self) -> str:
        """Value of the node's label: the tier of memory, then that of compute, such as "A-B"."""
        return "-".join(tier.value if tier else "none" for tier in (self.memory, self.compute))

    @property
    def promise(self) -> str:
        """What a tenant of this node may rely on, in words for the pod's status."""
        return f"{MEMORY_PROMISES[self.memory]} {COMPUTE_PROMISES[self.compute]}"


_COOPERATIVE = (
    "Cooperative isolation: stops accidents and misconfigured jobs of unmodified, dynamically "
    "linked programs, not an attacker who runs code in the container."
)
#: What each tier promises of memory. A container stays within its limit with all but None and D.
MEMORY_PROMISES: dict[Tier | None, str] = {
    Tier.DRIVER: "Hard memory limit: the driver refuses what exceeds it, whatever the program "
    "does; managed memory is not part of it.",
    Tier.INTERPOSER: f"Memory limit by the interposer. {_COOPERATIVE}",
    Tier.DETECT: "No memory limit: use beyond the share is detected within seconds and acted upon.",
    None: "No memory limit.",
}
COMPUTE_PROMISES: dict[Tier | None, str] = {
    Tier.INTERPOSER: "Compute share by the interposer, best effort against kernels that never end.",
    Tier.MPS: "Compute share by MPS: a client gets a bounded number of SMs, but shares memory "
    "bandwidth and fate: a fatal fault of one client may end the others.",
    Tier.DETECT: "No compute limit: use beyond the share is detected within seconds.",
    None: "No compute limit.",
}


def offer(facts: NodeFacts) -> Offer:
    """The tiers of a node with these facts, each with what it lacks."""
    missing = {
        Tier.DRIVER: _driver_lacks(facts),
        Tier.INTERPOSER: facts.interposer,
        Tier.MPS: "MIG is on: this agent runs no MPS beside MIG" if facts.mig else facts.mps,
        Tier.DETECT: facts.accounting,
    }
    offered = {tier for tier, lack in missing.items() if not lack}
    # MPS pins memory per process, not per container: that is no limit of a tenant.
    memory = (Tier.DRIVER, Tier.INTERPOSER, Tier.DETECT)
    # MPS counts only where the operator chose it, and then bounds what no interposer sees.
    compute = (Tier.MPS, Tier.INTERPOSER, Tier.DETECT)
    return Offer(
        memory=next((tier for tier in memory if tier in offered), None),
        compute=next((tier for tier in compute if tier in offered), None),
        standings=tuple(TierCheck(tier, lack) for tier, lack in missing.items()),
    )


def release(driver: str) -> int | None:
    """The release branch of a driver's version: 615 of "615.36.01"; None if it has none."""
    head = driver.partition(".")[0]
    return int(head) if head.isascii() and head.isdigit() else None


def _driver_lacks(facts: NodeFacts) -> str:
    branch = release(facts.driver)
    if branch is None:
        return f"no driver version known (NVML says {facts.driver!r})"
    if branch < MEMORY_LIMITS_DRIVER:
        return f"driver {facts.driver} is older than release {MEMORY_LIMITS_DRIVER}"
    if not facts.cgroup_v2:
        return "cgroups are not version 2"
    return facts.memory_limits
