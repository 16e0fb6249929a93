"""By what a container's processes are told, and what its page says of its share."""

import pytest
from msgspec.structs import replace

from alnair.node.cgroups import Cgroup
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    Share,
    problem,
    row,
    uuid_bytes,
)
from alnair.node.vgpu.pages import abi

ID = "3f4b8c1d" * 8
GPU = "GPU-8a1b0000-0000-0000-0000-00000000000f"
POD = "6b2b1f5c-9c3e-4d7f-8a51-0f6f3f0c9e11"
PLACE = Cgroup(f"/kubepods/pod{POD}/{ID}/x", f"/kubepods/pod{POD}/{ID}", ID, POD)

CASES = {
    "the id": (ContainerMatch(container=ID), True),
    "the beginning of the id": (ContainerMatch(container=ID[:12]), True),
    "another id": (ContainerMatch(container="0" * 64), False),
    "the pod": (ContainerMatch(pod=POD), True),
    "another pod": (ContainerMatch(pod=POD[:-1] + "0"), False),
    "a group above": (ContainerMatch(cgroup=f"/kubepods/pod{POD}"), True),
    "a group whose name only begins so": (ContainerMatch(cgroup=f"/kubepods/pod{POD[:-1]}"), False),
    "pod and id": (ContainerMatch(container=ID, pod=POD), True),
    "the pod, but another id": (ContainerMatch(container="0" * 64, pod=POD), False),
    "nothing": (ContainerMatch(), False),
}


@pytest.mark.parametrize(("who", "expected"), CASES.values(), ids=CASES)
def test_a_process_is_told_by_all_that_is_given(who: ContainerMatch, expected: bool) -> None:
    assert who.is_met_by(PLACE) is expected


def test_a_process_of_no_container_is_not_told_by_an_id() -> None:
    assert not ContainerMatch(container=ID).is_met_by(Cgroup("/a", "/a"))


def test_the_page_says_what_the_share_does() -> None:
    gpu = "GPU-8a1b0000-0000-0000-0000-00000000000f"
    share = Share(gpu, 1024, 30, soft=True, low_priority=True, context_mib=300, tier_a=True)
    page = row(replace(share, swap_mib=2048))
    assert (page.swap_limit, row(share).swap_limit) == (2 << 30, 0)
    assert row(replace(share, borrows=True)).flags == row(share).flags | abi.Flag.BORROWS
    assert bytes(page.uuid) == uuid_bytes(gpu) == bytes.fromhex("8a1b" + "0" * 27 + "f")
    assert (page.memory_limit, page.context_bytes) == (1 << 30, 300 << 20)
    assert (page.compute_percent, page.flags) == (
        30,
        abi.Flag.SOFT | abi.Flag.LOW_PRIORITY | abi.Flag.TIER_A,
    )


def test_a_soft_share_without_a_guarantee_has_one_percent() -> None:
    gpu = "GPU-00000000-0000-0000-0000-000000000001"
    assert row(Share(gpu, soft=True)).compute_percent == 1
    assert row(Share(gpu)).compute_percent == 0


@pytest.mark.parametrize(
    ("share", "says"),
    [
        (Share(GPU, 1024, swap_mib=2048), ""),
        (Share(GPU, swap_mib=2048), "of whose memory there is no limit to go beyond"),
        (Share(GPU, 1024, borrows=True), ""),
        (Share(GPU, borrows=True), "there is no limit of " + GPU),
        (Share(GPU, 1024, swap_mib=1024, borrows=True), "give one of the two"),
        (Share(GPU, 1024, swap_mib=-1), "give 0 (none) or more"),
        (Share(GPU, 1024, swap_mib=1 << 40), "give 0 (none) or more"),
    ],
)
def test_what_goes_beyond_a_limit_needs_one(share: Share, says: str) -> None:
    said = problem(ContainerSlices("a", ContainerMatch(container=ID), (share,)))
    assert bool(said) == bool(says)
    assert says in said


@pytest.mark.parametrize(
    ("share", "percent"),
    [
        (Share(GPU, 1024, sm_count=40), 0),
        (Share(GPU, 1024, 30), 0),
        (Share(GPU, 1024, 30, sm_count=40), 30),
        (Share(GPU, 1024, soft=True, sm_count=40), 1),
    ],
    ids=["SMs", "percent", "both", "SMs and what others leave"],
)
def test_a_share_is_of_the_sms_or_of_the_time(share: Share, percent: int) -> None:
    said = problem(ContainerSlices("a", ContainerMatch(container=ID), (share,)))
    assert said == (
        f"40 SMs and {percent} % of the time of {GPU}: a container that MPS gives SMs would be "
        "held back twice; give sm_count or compute_percent (or soft), not both"
        if percent
        else ""
    )


def test_a_slice_of_a_mig_device_is_refused_with_what_to_do() -> None:
    digits = "8a1b0000-0000-0000-0000-00000000000f"
    wanted = [
        ContainerSlices("a", ContainerMatch(container=ID), (Share(f"{kind}-{digits}", 1024),))
        for kind in ("GPU", "MIG")
    ]
    assert problem(wanted[0]) == ""
    assert problem(wanted[1]) == (
        f"MIG-{digits} is a MIG device, of which there are no slices (it is a fixed part of its "
        "GPU): give the whole of it as nvidia.com/mig-PROFILE, or a slice of a GPU that is not in "
        "MIG mode"
    )
