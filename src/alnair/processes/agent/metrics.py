"""The agent's figures at `/metrics`: per container and GPU what it may use, uses and is refused."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.metrics_core import Metric

from alnair.node.gpu_driver import GpuDriver
from alnair.node.isolation import Isolation
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.containers.container_slices import guaranteed
from alnair.node.vgpu.context_costs import ContextCosts
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.server import VgpuServer
from alnair.processes.agent.enforcement import Enforcement
from alnair.processes.agent.slice_labels import SliceLabels
from alnair.serving.exposition import Labels, counter, gauge, of_this_process
from alnair.sharing.violations import Kind

_GIGA: Final = 1_000_000_000


def metrics(
    server: VgpuServer,
    driver: GpuDriver,
    inspection: Inspection,
    enforcement: Enforcement,
    isolation: Isolation,
    costs: ContextCosts,
    labels: SliceLabels,
) -> Iterator[Metric]:
    """Return all families; what the driver says only once there was one."""
    # A pod that was made anew under its old name has two for a moment. The newer is shown: a series
    # that occurs twice makes the whole answer invalid.
    by_age = sorted(server.containers.values(), key=lambda c: c.since)
    containers = list({tuple(labels.of(c).values()): c for c in by_age}.values())
    yield from _slices(containers, labels)
    yield from _containers(containers, labels)
    yield from _server(server)
    yield from of_this_process()
    if driver.opened:
        yield from _inspected(containers, inspection, labels)
    is_up = not driver.problem and not inspection.problem
    yield gauge("alnair_vgpu_nvml_up", "Whether NVML answers.", [({}, float(is_up))])
    yield counter(
        "alnair_vgpu_evictions_total",
        "Pods whose eviction the API server has accepted.",
        [({}, enforcement.evictions)],
    )
    yield from _isolated(isolation)
    yield gauge(
        "alnair_vgpu_context_bytes",
        "Memory of the GPU that a CUDA context is reckoned to cost, where that is known.",
        (({"gpu": uuid}, cost) for uuid, cost in sorted(costs.known.items())),
    )


def _isolated(isolation: Isolation) -> Iterator[Metric]:
    """Which tiers there are."""
    yield gauge(
        "alnair_node_tier",
        "Whether the node offers a tier of isolation: A driver, B interposer, C MPS, D detection.",
        (({"tier": one.tier.value}, float(one.offered)) for one in isolation.offer.standings),
    )
    if isolation.mps is None:
        return
    health = isolation.mps.health
    yield gauge("alnair_mps_clients", "Clients of MPS.", [({}, float(len(health.clients)))])
    yield counter(
        "alnair_mps_restarts_total",
        "Times that the MPS daemon ended unasked or had to be replaced.",
        [({}, health.restarts)],
    )


def _inspected(
    containers: list[VgpuContainer], inspection: Inspection, labels: SliceLabels
) -> Iterator[Metric]:
    """What the driver says."""
    by_name = {container.assignment.name: container for container in containers}
    slices = [
        ({**labels.of(c), "gpu": share.uuid}, c.assignment.name, share.uuid)
        for c in containers
        for share in c.assignment.shares
    ]
    yield gauge(
        "alnair_vgpu_memory_driver_bytes",
        "Memory of the GPU that the driver charges to its processes.",
        ((of_slice, inspection.measured.get((name, uuid), 0)) for of_slice, name, uuid in slices),
    )
    yield gauge(
        "alnair_vgpu_violation",
        "Whether it uses more than its slice now, by kind.",
        (
            ({**of_slice, "kind": kind}, float(kind in inspection.violations(name, uuid)))
            for of_slice, name, uuid in slices
            for kind in Kind
        ),
    )
    yield counter(
        "alnair_vgpu_violations_total",
        "Violations that were confirmed, by kind.",
        (
            ({**labels.of(by_name[name]), "gpu": uuid, "kind": kind}, count)
            for (name, uuid, kind), count in sorted(inspection.confirmed.items())
            if name in by_name
        ),
    )
    yield gauge(
        "alnair_gpu_stray_processes",
        "Processes on a GPU of which nothing was given to them, by kind: pod or host.",
        (
            ({"gpu": uuid, "kind": kind}, count)
            for (uuid, kind), count in sorted(inspection.strays.seen.items())
        ),
    )
    yield counter(
        "alnair_gpu_strays_total",
        "Pods that were confirmed to use a GPU of which nothing was given to them.",
        (
            ({"gpu": uuid}, inspection.strays.confirmed.get(uuid, 0))
            for uuid in sorted({uuid for uuid, _ in inspection.strays.seen})
        ),
    )


def _slices(containers: list[VgpuContainer], labels: SliceLabels) -> Iterator[Metric]:
    """What there is per container and GPU."""
    rows = [
        (labels.of_slice(c, row), c, row)
        for c in containers
        for row in range(len(c.assignment.shares))
    ]

    def of(value: Callable[[VgpuContainer, int], float]) -> Iterable[tuple[Labels, float]]:
        return ((of_slice, value(container, row)) for of_slice, container, row in rows)

    def total(name: str) -> Iterable[tuple[Labels, float]]:
        return of(lambda c, row: c.totals.devices[row][name])

    def seconds(name: str) -> Iterable[tuple[Labels, float]]:
        return of(lambda c, row: c.totals.devices[row][name] / _GIGA)

    yield gauge(
        "alnair_vgpu_memory_limit_bytes",
        "Memory of the GPU that the container may use; 0 is no limit.",
        of(lambda c, row: c.limits.page.device[row].memory_limit),
    )
    yield gauge(
        "alnair_vgpu_memory_used_bytes",
        "Memory that its processes hold, by their own account.",
        of(lambda c, row: c.held(row)),
    )
    yield gauge(
        "alnair_vgpu_memory_overhead_bytes",
        "Memory beyond that account that the driver charges to it; counts as used.",
        of(lambda c, row: c.limits.page.device[row].memory_overhead),
    )
    yield gauge(
        "alnair_vgpu_memory_loan_bytes",
        "Memory of the GPU beyond its limit that the container may use now, as nobody else may.",
        of(lambda c, row: c.loan(row)),
    )
    yield gauge(
        "alnair_vgpu_host_memory_limit_bytes",
        "Memory of the host that the container may use beyond that of the GPU.",
        of(lambda c, row: c.limits.page.device[row].swap_limit),
    )
    yield gauge(
        "alnair_vgpu_host_memory_used_bytes",
        "Memory of the host that its processes hold beyond that of the GPU, by their own account.",
        of(lambda c, row: c.swapped(row)),
    )
    yield gauge(
        "alnair_vgpu_compute_guaranteed_ratio",
        "Guaranteed part of the GPU's time; 0 is no limit.",
        of(lambda c, row: guaranteed(c.assignment.shares[row]) / 100),
    )
    yield gauge(
        "alnair_vgpu_compute_granted_ratio",
        "Part of the GPU's time that it may use now; 0 is no limit.",
        of(_granted),
    )
    yield counter(
        "alnair_vgpu_compute_charged_seconds_total", "GPU time used.", seconds("charged_ns")
    )
    yield counter(
        "alnair_vgpu_compute_throttled_seconds_total",
        "Time that its threads waited for GPU time.",
        seconds("throttled_ns"),
    )
    yield counter("alnair_vgpu_launches_total", "Kernels and graphs launched.", total("launches"))
    yield counter(
        "alnair_vgpu_refused_allocations_total",
        "Allocations that the memory limit refused.",
        total("refused"),
    )
    yield gauge(
        "alnair_vgpu_tier",
        "What holds the memory limit: A the driver, B the library in the container.",
        (
            ({**of_slice, "tier": "A" if c.assignment.shares[row].tier_a else "B"}, 1)
            for of_slice, c, row in rows
        ),
    )


def _granted(container: VgpuContainer, row: int) -> float:
    device = container.limits.page.device[row]
    if not device.compute_percent:
        return 0
    return float(device.rate_ppm / 1e6 if device.rate_ppm else device.compute_percent / 100)


def _containers(containers: list[VgpuContainer], labels: SliceLabels) -> Iterator[Metric]:
    """What there is per container."""
    named = [(labels.of(c), c) for c in containers]
    by_class = [
        ({**of, "class": call.name.lower()}, c.totals.calls[call])
        for of, c in named
        for call in abi.Call
        if call not in c.totals.uncounted
    ]

    def calls(part: int, scale: float = 1) -> Iterable[tuple[Labels, float]]:
        return ((of, counted[part] / scale) for of, counted in by_class)

    yield counter("alnair_vgpu_calls_total", "Calls of the driver by API class.", calls(0))
    yield counter(
        "alnair_vgpu_call_bytes_total", "Bytes that they allocated, freed or moved.", calls(1)
    )
    yield counter(
        "alnair_vgpu_call_seconds_total", "Time in them, sampled 1 in 64.", calls(2, _GIGA)
    )
    yield counter(
        "alnair_vgpu_unknown_calls_total",
        "Driver functions asked for that the library does not know.",
        ((of, c.totals.unhooked) for of, c in named),
    )
    yield gauge(
        "alnair_vgpu_processes",
        "Processes that use CUDA.",
        ((of, len(c.census.pids)) for of, c in named),
    )
    yield gauge(
        "alnair_vgpu_registered",
        "Whether a process of the container has registered.",
        ((of, float(c.group is not None)) for of, c in named),
    )
    yield counter(
        "alnair_vgpu_registrations_total",
        "Answers to its processes: ok, refused, bad (not our frame), busy, late (nothing said).",
        (
            ({**of, "answer": answer}, count)
            for of, c in named
            for answer, count in (
                *((kind.name.lower(), n) for kind, n in c.registration.answered.items()),
                ("late", c.registration.late),
            )
        ),
    )
    yield counter(
        "alnair_vgpu_repairs_total",
        "How often its processes damaged the counters' file, which was set right.",
        ((of, c.counters.repaired) for of, c in named),
    )


def _server(server: VgpuServer) -> Iterator[Metric]:
    count, seconds = server.ticks
    yield counter("alnair_vgpu_ticks_total", "Ticks of the server, 20 a second.", [({}, count)])
    yield counter("alnair_vgpu_tick_seconds_total", "Time in them.", [({}, seconds)])
    yield gauge(
        "alnair_vgpu_damaged_containers",
        "Containers whose folder cannot be used, so that they are refused.",
        [({}, len(server.damaged))],
    )
