"""Which containers start, with which GPUs, and what is said of those that do not."""

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from alnair.model import names
from alnair.model.api_types import AssignedGpu
from alnair.sharing.matching.node_state import Allocation, NodeGpu, PodOnNode
from alnair.sharing.matching.outcomes import Choose, ContainerStart, Refuse, Start, Wait
from alnair.sharing.matching.starting import Listed, start
from kit.node_state import allocated, asks, node_gpus, pod_on_node, slice_of, whole_gpu

HALF = asks(memory=5_000, compute=50)
A = pod_on_node("a", HALF, given={"main": [slice_of(1, 5_000, 50)]})
B = pod_on_node("b", HALF, given={"main": [slice_of(1, 5_000, 50)]})
C = pod_on_node("c", HALF, given={"main": [slice_of(1, 5_000, 50)]})


def decide(
    pod: PodOnNode,
    *others: PodOnNode,
    ids: Sequence[str] = ("slot-7",),
    resource: str = names.VGPU,
    allocations: Sequence[Allocation] | None = None,
    listed: Sequence[Listed] | None = None,
    gpus: Sequence[NodeGpu] | None = None,
    started: Sequence[PodOnNode] = (),
    own: Mapping[str, tuple[AssignedGpu, ...]] | None = None,
    aligned: bool = False,
    known: bool = True,
) -> Start | Choose | Wait | Refuse:
    """Decide on the start of the pod's container main, which holds the ids unless told."""
    if allocations is None:
        allocations = [allocated(pod, "main", *ids, resource=resource)]
    if listed is None:
        listed = [(pod.namespace, pod.name, "main")]
    pods = {p.uid: p for p in (*([pod] if known else []), *others)}
    begun = {p.uid: {name: tuple(v) for name, v in p.assigned.items()} for p in started}
    if own is not None:
        begun[pod.uid] = dict(own)
    return start(
        resource,
        frozenset(ids),
        allocations,
        listed,
        pods,
        node_gpus() if gpus is None else gpus,
        begun,
        aligned=aligned,
    )


def test_a_container_gets_what_its_pod_was_assigned_whatever_the_ids_are() -> None:
    assert decide(A) == Start(
        A, (ContainerStart("main", (slice_of(1, 5_000, 50),), "alnair/slot=a-main"),)
    )
    whole = pod_on_node("w", asks(whole=1), given={"main": [whole_gpu(1)]})
    found = decide(whole, ids=["GPU-0"], resource=names.GPU)
    assert isinstance(found, Start)
    assert found.containers[0].parts == (whole_gpu(1),)


def test_containers_that_use_the_same_ids_one_after_another_are_all_made_ready() -> None:
    part = [slice_of(0, 5_000)]
    pod = pod_on_node(
        "a",
        asks("load", memory=5_000, init=True),
        asks(memory=5_000),
        given={"load": part, "main": part},
    )
    both = [allocated(pod, "load", "slot-7"), allocated(pod, "main", "slot-7")]
    found = decide(pod, allocations=both)
    assert isinstance(found, Start)
    assert [(c.name, c.device) for c in found.containers] == [
        ("load", "alnair/slot=a-load"),
        ("main", "alnair/slot=a-main"),
    ]


def test_an_init_container_alone_is_not_in_the_pod_resources_and_starts_nevertheless() -> None:
    pod = pod_on_node("a", asks("load", memory=500, init=True), given={"load": [slice_of(0, 500)]})
    assert isinstance(decide(pod, allocations=[allocated(pod, "load", "slot-7")], listed=[]), Start)


def test_an_init_container_with_more_ids_is_told_from_the_main_one_that_reuses_some() -> None:
    pod = pod_on_node(
        "a",
        asks("load", whole=2, init=True),
        asks(whole=1),
        given={"load": [whole_gpu(0), whole_gpu(1)], "main": [whole_gpu(1)]},
    )
    held = [
        allocated(pod, "load", "GPU-0", "GPU-1", resource=names.GPU),
        allocated(pod, "main", "GPU-0", resource=names.GPU),
    ]
    first = decide(pod, ids=["GPU-0", "GPU-1"], resource=names.GPU, allocations=held)
    then = decide(pod, ids=["GPU-0"], resource=names.GPU, allocations=held)
    assert isinstance(first, Start)
    assert [c.name for c in first.containers] == ["load"]
    assert isinstance(then, Start)
    assert [(c.name, c.parts) for c in then.containers] == [("main", (whole_gpu(1),))]


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (decide(A, allocations=[]), "does not say whose 1 ids of alnair/vgpu are"),
        (decide(A, allocations=[allocated(A, "main", "slot-7", "slot-8")]), "does not say whose"),
        (
            decide(A, B, allocations=[allocated(A, "main", "slot-7"), allocated(B, "x", "slot-7")]),
            "to 2 pods (uid-a, uid-b)",
        ),
        (
            decide(
                A,
                B,
                ids=["slot-7", "slot-8"],
                allocations=[
                    allocated(A, "main", "slot-7", "slot-8"),
                    allocated(B, "x", "slot-8"),
                ],
            ),
            "to 2 pods",
        ),
        (decide(A, gpus=[]), "the GPUs of this node are not known yet"),
        (decide(A, known=False), "pod uid-a is not known from the API server yet"),
        (
            decide(A, listed=[("team", "a", "main"), ("team", "b", "main")]),
            "checkpoint, but its pod-resources API gives some to container 'main' of pod team/b",
        ),
        (
            decide(A, listed=[("team", "a", "main"), ("team", "a", "late")]),
            "checkpoint, but its pod-resources API gives some to container 'late' of pod team/a",
        ),
        (decide(A, listed=[]), "does not list container 'main' with them"),
    ],
)
def test_what_cannot_be_told_for_sure_waits(found: object, says: str) -> None:
    assert isinstance(found, Wait)
    assert says in found.reason
    assert found.reason.endswith("the kubelet tries again")


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (decide(replace(A, is_ended=True)), "pod team/a has ended"),
        (decide(replace(A, demand=None)), "do not write alnair/vgpu by hand"),
        (
            decide(pod_on_node("a", asks("other", memory=500), given={})),
            "container 'main' with alnair/vgpu, but without alnair/vgpu-memory",
        ),
        (decide(pod_on_node("a", asks(whole=1), given={})), "do not write alnair/vgpu by hand"),
        (
            decide(pod_on_node("a", asks(memory=8), given={})),
            "asks for what no GPU can give: container 'main' asks for alnair/vgpu-memory: 8",
        ),
    ],
)
def test_what_is_wrong_with_the_pod_itself_is_refused_for_good(found: object, says: str) -> None:
    assert isinstance(found, Refuse)
    assert found.is_final
    assert says in found.reason


def test_a_slot_that_somebody_wrote_into_an_init_container_is_refused_not_waited_for() -> None:
    pod = pod_on_node("a", asks(memory=500), given={"main": [slice_of(0, 500)]})
    found = decide(pod, allocations=[allocated(pod, "load", "slot-7")], listed=[])
    assert isinstance(found, Refuse)
    assert found.is_final


def test_a_pod_without_an_assignment_has_one_chosen_near_what_the_kubelet_allocated() -> None:
    pod = pod_on_node("a", asks(whole=1), asks("side", memory=500))
    held = [
        allocated(pod, "main", "GPU-1", resource=names.GPU),
        allocated(pod, "side", "slot-7"),
    ]
    found = decide(pod, allocations=held, ids=["slot-7"], listed=[("team", "a", "side")])
    assert found == Choose(pod, {"main": frozenset({"GPU-1"})})


def given(*parts: AssignedGpu, name: str = "main") -> PodOnNode:
    return pod_on_node("a", HALF, given={name: parts})


SLICED_TWICE = pod_on_node(
    "a",
    asks(memory=500),
    asks("side", memory=500),
    given={"main": [slice_of(0, 500)], "side": [slice_of(1, 500)]},
)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (decide(replace(A, assignment=None, assignment_problem="version 2")), "says: version 2"),
        (decide(given()), "container 'main' asks for 5000 MiB and 50 % of one GPU, but gets noth"),
        (decide(given(slice_of(1, 5_000, 50), name="other")), "'main' asks for 5000 MiB and 50 %"),
        (decide(given(slice_of(1, 4_000, 50))), "but gets 4000 MiB and 50 % of GPU GPU-1"),
        (decide(given(slice_of(1, 5_000, 60))), "but gets 5000 MiB and 60 % of GPU GPU-1"),
        (decide(given(whole_gpu(1))), "but gets the whole GPU GPU-1"),
        (decide(given(slice_of(2, 5_000, 50))), "GPU GPU-2 is not on this node"),
        (decide(SLICED_TWICE), "slices lie on 2 GPUs (GPU-0, GPU-1), not on one"),
        (
            decide(A, gpus=[replace(g, problem="XID 79") for g in node_gpus()]),
            "GPU 1 (GPU-1) takes no new containers: XID 79",
        ),
        (
            decide(A, gpus=[replace(g, may_be_sliced=False) for g in node_gpus()]),
            "GPU 1 (GPU-1) is in MIG mode",
        ),
        (
            decide(A, own={"main": (slice_of(0, 5_000, 50),)}),
            "changed after container 'main' had started with other GPUs",
        ),
    ],
)
def test_what_the_pod_was_given_cannot_be_had_so_another_pod_may_replace_it(
    found: object, says: str
) -> None:
    assert isinstance(found, Refuse)
    assert not found.is_final
    assert says in found.reason
    assert "pod team/a cannot start as annotation ai.centaurus.io/gpu-assignment says" in (
        found.reason
    )


def test_a_gpu_that_fails_stops_only_containers_that_start_on_it() -> None:
    pod = pod_on_node(
        "a",
        asks(memory=500),
        asks("other", whole=1),
        given={"main": [slice_of(0, 500)], "other": [whole_gpu(1)]},
    )
    gpus = [node_gpus()[0], replace(node_gpus()[1], problem="XID 79")]
    assert isinstance(decide(pod, gpus=gpus), Start)


def test_whole_gpus_must_be_near_the_cores_only_where_the_kubelet_aligns() -> None:
    pod = pod_on_node("a", asks(whole=1), given={"main": [whole_gpu(1)]})
    gpus = node_gpus(3, numa=(0, 1, 1))
    for chosen, aligned, starts in (
        ("GPU-0", True, False),
        ("GPU-2", True, True),
        ("GPU-0", False, True),
    ):
        found = decide(pod, ids=[chosen], resource=names.GPU, gpus=gpus, aligned=aligned)
        assert isinstance(found, Start) == starts
    refused = decide(pod, ids=["GPU-0"], resource=names.GPU, gpus=gpus, aligned=True)
    assert isinstance(refused, Refuse)
    assert not refused.is_final
    assert "near NUMA nodes 1, and the kubelet's topology manager chose" in refused.reason


def test_a_slot_is_near_no_cores() -> None:
    assert isinstance(decide(A, gpus=node_gpus(2, numa=(0, 1)), aligned=True), Start)


def test_a_gpu_is_filled_to_the_last_mib_and_percent() -> None:
    assert isinstance(decide(A, B, started=[B]), Start)


def test_what_is_leaving_is_waited_for_and_what_stays_is_not() -> None:
    found = decide(A, B, replace(C, is_leaving=True), started=[B, C])
    assert found == Wait(
        "pod team/a has no room yet: GPU 1 (GPU-1) has 10000 MiB: others hold 10000, and this pod "
        "asks for 5000; some of them are leaving: the kubelet tries again"
    )
    for gone in (replace(C, is_ended=True), None):
        others = [B] if gone is None else [B, gone]
        assert isinstance(decide(A, *others, started=[B, C]), Wait)
    assert decide(A, B, C, started=[B, C]) == Refuse(
        "pod team/a has no room: GPU 1 (GPU-1) has 10000 MiB: others hold 10000, and this pod "
        "asks for 5000",
        is_final=False,
    )


def test_a_container_that_starts_again_has_its_own_room() -> None:
    assert isinstance(decide(A, B, started=[A, B]), Start)
