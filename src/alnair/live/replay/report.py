"""The outcome of a replay: one record; its JSON is this struct."""

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.live.replay import gpu_state, scheduler
from alnair.live.replay.replayed_pods import ReplayedPods
from alnair.model.percentiles import nearest_rank
from alnair.scheduler.published.fragmentation import WorkloadClass, fragmentation


class ReplayReport(msgspec.Struct, frozen=True):
    """What a replay came to; None where it could not be measured.

    Attributes:
        pods: Pods of the replay.
        placed: Those that have a node.
        pending: Those that have none.
        reasons: Why pods are pending → how many; those that nobody has judged are not in it.
        gpu_allocated_pct: GPU held by all pods of the cluster, of the GPU that it has.
        frag_pct: F of FGD over the same capacity, for the pod list's workload.
        decision_p50_us: Median time of the scheduler for one decision, microseconds.
        decision_p99_us: 99th percentile of it.
        e2e_p50_ms: Median time from the acknowledged creation to the binding seen, milliseconds.
        e2e_p99_ms: 99th percentile of it.
        pods_per_second: Bindings over the time from the first creation to the last binding.
    """

    pods: int
    placed: int
    pending: int
    reasons: dict[str, int]
    gpu_allocated_pct: float | None
    frag_pct: float | None
    decision_p50_us: float | None
    decision_p99_us: float | None
    e2e_p50_ms: float | None
    e2e_p99_ms: float | None
    pods_per_second: float | None


async def report(
    client: Client,
    ledger: ReplayedPods,
    workload: tuple[WorkloadClass, ...],
    profile: str,
    since: float,
) -> ReplayReport:
    """Read back what became of the cluster, and put all together.

    Args:
        client: An open client.
        ledger: What became of the pods.
        workload: The target workload that fragmentation is measured against.
        profile: The schedulerName of the pods.
        since: When the replay began, seconds since the epoch.
    """
    counts = ledger.counts()
    latencies = ledger.latencies()
    decisions = await scheduler.decisions(client, profile, since)
    allocated = stranded = None
    try:
        state = await gpu_state.read(client)
    except KubeError:
        state = None  # the rest is known without the API server
    if state is not None and state.capacity:
        allocated = round(100 * state.allocated / state.capacity, 2)
        stranded = round(100 * fragmentation(state.free, workload) / state.capacity, 2)
    rate = ledger.pods_per_second()
    return ReplayReport(
        pods=counts.pods,
        placed=counts.placed,
        pending=counts.pods - counts.placed,
        reasons=ledger.reasons(),
        gpu_allocated_pct=allocated,
        frag_pct=stranded,
        decision_p50_us=decisions.p50_us,
        decision_p99_us=decisions.p99_us,
        e2e_p50_ms=_milli(nearest_rank(latencies, 50)),
        e2e_p99_ms=_milli(nearest_rank(latencies, 99)),
        pods_per_second=None if rate is None else round(rate, 1),
    )


def _milli(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 1)
