"""Who uses a GPU how much, and where that is not what they were given."""

import pytest

from alnair.model import usage
from alnair.profiler.pods.gpu_use import (
    Disagreement,
    Given,
    GpuAttribution,
    GpuUse,
    Holder,
    Kind,
    gpu_figures,
    share_out,
)
from alnair.profiler.samples import GpuSample, ProcessSample

A, B = Holder("uid-a", "main"), Holder("uid-b", "main")
GPU = "GPU-1"


def process(pid: int, sm: float | None = None, mib: int | None = None) -> ProcessSample:
    return ProcessSample(pid, sm=sm, memory_bytes=None if mib is None else mib << 20)


@pytest.mark.parametrize(
    ("util", "mine", "others", "charged", "expected"),
    [
        pytest.param(
            80.0,
            {A: [process(1, 30), process(2, 10)], B: [process(3, 20)]},
            [],
            {},
            {A: 40.0, B: 20.0},
            id="processes",
        ),
        pytest.param(
            90.0,
            {A: [process(1, 90)], B: [process(2, 90)]},
            [process(3, 20)],
            {},
            {A: 45.0, B: 45.0},
            id="never more than the GPU, with what the node's own programs use",
        ),
        pytest.param(0.0, {A: [], B: []}, [], {}, {A: 0.0, B: 0.0}, id="given and idle is 0"),
        pytest.param(
            70.0, {A: [process(1)]}, [], {}, {A: 70.0}, id="alone, it is the GPU's own figure"
        ),
        pytest.param(70.0, {A: [process(1)], B: []}, [], {}, {}, id="of two nobody knows whose"),
        pytest.param(
            70.0, {A: [process(1)]}, [process(9)], {}, {}, id="nor beside a program of the node"
        ),
        pytest.param(0.0, {A: [process(1)], B: []}, [], {}, {A: 0.0, B: 0.0}, id="but 0 is 0"),
        pytest.param(None, {A: [process(1)]}, [], {}, {}, id="not measured is not 0"),
        pytest.param(
            90.0,
            {A: [process(1, 70)], B: [process(2, 20)]},
            [],
            {A: 60.0},
            {A: 60.0, B: 20.0},
            id="what was charged is exact",
        ),
        pytest.param(
            99.0,
            {A: [process(1)], B: [process(2)]},
            [],
            {A: 60.0, B: 41.0},
            {A: 60.0 * 100 / 101, B: 41.0 * 100 / 101},
            id="and is cut to the GPU's time, too",
        ),
        pytest.param(
            90.0, {A: [process(1)]}, [], {A: None}, {}, id="a first look has charged nothing yet"
        ),
    ],
)
def test_a_gpus_time_is_shared_out(
    util: float | None,
    mine: dict[Holder, list[ProcessSample]],
    others: list[ProcessSample],
    charged: dict[Holder, float | None],
    expected: dict[Holder, float],
) -> None:
    found = share_out(util, mine, others, charged)
    assert found == pytest.approx(expected)
    assert sum(found.values()) <= 100 + 1e-9


def test_memory_energy_and_links_go_to_whom_they_belong() -> None:
    gpus = GpuAttribution()
    given = [Given(A, GPU, whole=True)]
    owners = {1: A}

    def look(at: float, *processes: ProcessSample) -> dict[tuple[Holder, str], GpuUse]:
        sample = GpuSample(
            at,
            util=50.0,
            memory_copy=20.0,
            power_w=300.0,
            energy_j=1000.0 + 300 * at,
            pcie_rx=int(at * 10 * (1 << 20)),
            processes=processes,
        )
        return gpus.take({GPU: sample}, owners, given).uses

    first = look(1.0, process(1, None, 100))
    assert first[A, GPU] == GpuUse(50.0, 20.0, 100 << 20, power_w=300.0), "no time has passed yet"
    second = look(3.0, process(1, None, 100))
    assert second[A, GPU].energy_j == 600.0
    assert second[A, GPU].links == {usage.PCIE_RX_MIB_S: 10.0}
    # It shares the GPU now: what went over the links is not known of each.
    owners[2] = B
    shared = look(5.0, process(1, 30.0, 100), process(2, 10.0, None))
    assert (shared[A, GPU].energy_j, shared[B, GPU].energy_j) == (450.0, 150.0)
    assert shared[A, GPU].links == {}
    assert shared[B, GPU].memory_bytes is None, "what the driver does not say is not 0"
    # Nobody computes, and who holds the GPU lets it draw its power.
    idle = look(7.0)
    assert idle[A, GPU] == GpuUse(
        0.0, 0.0, 0, power_w=300.0, energy_j=600.0, links={usage.PCIE_RX_MIB_S: 10.0}
    )


def test_charged_time_counts_from_look_to_look_and_begins_anew() -> None:
    gpus = GpuAttribution()

    def look(at: float, charged: int) -> float | None:
        given = [Given(A, GPU, whole=False, charged_ns=charged)]
        sample = GpuSample(at, util=90.0, processes=(process(1), process(2)))
        return gpus.take({GPU: sample}, {1: A, 2: B}, given).uses[A, GPU].util

    assert look(1.0, 10**9) is None
    assert look(2.0, 1_250_000_000) == 25.0
    assert look(4.0, 10_000_000) is None, "the server began anew"
    assert look(5.0, 510_000_000) == 50.0


def test_what_was_given_and_what_is_used_are_compared() -> None:
    stranger = Holder("uid-c", "main")
    given = [
        Given(A, GPU, whole=True),
        Given(B, GPU, whole=False),
        Given(Holder("uid-d", "x"), GPU, whole=False),
    ]
    owners = {1: A, 2: stranger, 3: stranger, 4: None, 6: Holder("uid-d", "")}
    sample = GpuSample(1.0, processes=tuple(process(pid) for pid in (1, 2, 3, 4, 5, 6)))
    found = GpuAttribution().take({GPU: sample}, owners, given).disagreements
    assert found == (
        Disagreement(Kind.USES_NOT_GIVEN, GPU, stranger, 2),
        Disagreement(Kind.GIVEN_IDLE, GPU, B, 0),
        Disagreement(Kind.UNMAPPED, GPU, None, 1),
    )


def test_a_divided_gpu_counts_by_its_parts() -> None:
    part = GpuSample(1.0, util=None, memory_bytes=5 << 20, processes=(process(1, None, 5),))
    whole = GpuSample(1.0, processes=(process(1, None, 5),), mig={"MIG-1": part})
    found = GpuAttribution().take({GPU: whole}, {1: A}, [Given(A, "MIG-1", whole=True)])
    assert found.uses == {(A, "MIG-1"): GpuUse(memory_bytes=5 << 20)}
    assert found.disagreements == ()


def test_a_container_has_means_of_percentages_and_sums_of_the_rest() -> None:
    two = [
        GpuUse(80.0, 10.0, 1 << 30, power_w=300.0, links={usage.PCIE_RX_MIB_S: 3.0}),
        GpuUse(20.0, None, 2 << 30, power_w=100.0, links={usage.PCIE_RX_MIB_S: 4.0}),
    ]
    assert gpu_figures(two) == {
        usage.GPU_UTIL: 50.0,
        usage.GPU_MEMORY_MIB: 3072.0,
        usage.POWER_W: 400.0,
        usage.PCIE_RX_MIB_S: 7.0,
    }
    assert gpu_figures([]) == {}
