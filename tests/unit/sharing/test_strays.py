"""Who is a stray, when that is sure, and what follows."""

import pytest

from alnair.sharing.strays import (
    Owner,
    StrayAction,
    StrayCase,
    StrayFound,
    StrayGone,
    StrayPolicy,
    judge_stray,
    owner,
    respond_to_stray,
    stray_policy,
)
from alnair.sharing.violations import EvictTenant, Policy, Process

GPU, OTHER = "GPU-a", "GPU-b"
WHOLE = {"holder": frozenset({GPU}), "idle": frozenset[str]()}
STRAY = Process(pid=8, memory=None, registered=False, age=100.0, listed=1.0)


def looks(*moments: float, case: StrayCase | None = None) -> list[StrayCase | None]:
    """What is held against a pod after looks at these moments, at all of which there is a stray."""
    cases = []
    for moment in moments:
        case = judge_stray(case, moment, [STRAY])
        cases.append(case)
    return cases


@pytest.mark.parametrize(
    ("pod", "gpu", "whose"),
    [
        ("holder", GPU, Owner.WHOLE),
        ("holder", OTHER, Owner.POD),
        ("idle", GPU, Owner.POD),
        ("asked-for-nothing", GPU, Owner.POD),
        ("", GPU, Owner.HOST),
        ("the-agent", GPU, Owner.HOST),
    ],
)
def test_a_gpu_may_be_used_by_pods_that_hold_it_and_by_the_node(
    pod: str, gpu: str, whose: Owner
) -> None:
    assert owner(pod, gpu, "the-agent", WHOLE) is whose


def test_while_it_is_not_known_who_holds_what_no_pod_is_called_a_stray() -> None:
    assert owner("holder", GPU, "", None) is owner("other", GPU, "", None) is Owner.UNKNOWN
    assert owner("", GPU, "", None) is Owner.HOST


@pytest.mark.parametrize("third", [11.98, 12, 12.02])
def test_a_stray_is_confirmed_at_the_third_look_with_one_sentence(third: float) -> None:
    *suspected, confirmed = looks(10, 11, third)
    assert [case and case.message for case in suspected] == ["", ""]
    said = "1 process(es) use a GPU of which the pod was given nothing (host pid 8)"
    assert confirmed == StrayCase(10, third, said)
    second = Process(pid=9, memory=None, registered=False, age=9.0, listed=1.0)
    later = judge_stray(confirmed, 13, [STRAY, second])
    assert later == StrayCase(10, 13, said)


def test_a_pod_that_was_given_the_gpu_meanwhile_is_suspected_no_more() -> None:
    (*_, suspected) = looks(10, 11)
    assert judge_stray(suspected, 12, []) is None
    (*_, again) = looks(14, 15)
    assert again == StrayCase(14, 15)


def test_a_gap_between_looks_begins_the_suspicion_anew() -> None:
    (*_, case) = looks(10, 11, 20)
    assert case == StrayCase(20, 20)


def test_a_number_that_the_driver_still_lists_of_a_process_that_is_gone_accuses_nobody() -> None:
    reused = Process(pid=8, memory=None, registered=False, age=0.5, listed=30.0)
    assert judge_stray(None, 10, [reused]) is None


SUSPECTED, CONFIRMED = StrayCase(1, 2), StrayCase(1, 4, "said")


@pytest.mark.parametrize(
    ("policy", "before", "after", "actions"),
    [
        (StrayPolicy.EVICT, None, SUSPECTED, []),
        (StrayPolicy.WARN, SUSPECTED, CONFIRMED, [StrayFound("said")]),
        (StrayPolicy.EVICT, SUSPECTED, CONFIRMED, [StrayFound("said"), EvictTenant("said")]),
        (StrayPolicy.EVICT, CONFIRMED, CONFIRMED, []),
        (StrayPolicy.EVICT, CONFIRMED, None, [StrayGone()]),
        (StrayPolicy.EVICT, SUSPECTED, None, []),
    ],
)
def test_a_stray_is_told_once_and_evicted_by_policy(
    policy: StrayPolicy,
    before: StrayCase | None,
    after: StrayCase | None,
    actions: list[StrayAction],
) -> None:
    assert respond_to_stray(policy, before, after) == actions


def test_only_a_policy_that_evicts_tenants_evicts_strays_by_default() -> None:
    assert [stray_policy(policy) for policy in Policy] == [
        StrayPolicy.WARN,
        StrayPolicy.WARN,
        StrayPolicy.EVICT,
    ]
