"""Which tiers a node offers follows from what it has, and says what it lacks."""

import pytest

from alnair.sharing.tiers import NodeFacts, Tier, offer, release

NEW = {"driver": "615.36.01"}


@pytest.mark.parametrize(
    ("facts", "memory", "compute"),
    [
        ({**NEW}, "A", "B"),
        ({"driver": "580.65.06"}, "B", "B"),
        ({**NEW, "cgroup_v2": False}, "B", "B"),
        ({**NEW, "mig": True, "mps": ""}, "A", "B"),
        ({**NEW, "memory_limits": "not supported"}, "B", "B"),
        ({**NEW, "mps": ""}, "A", "C"),
        ({**NEW, "interposer": "no library"}, "A", "D"),
        ({"driver": "", "interposer": "no library"}, "D", "D"),
        ({"driver": "580.1", "interposer": "no library", "mps": ""}, "D", "C"),
        ({"driver": "580.1", "interposer": "no", "accounting": "no"}, None, None),
    ],
)
def test_the_strongest_tier_of_what_a_node_has_holds(
    facts: dict[str, object], memory: str | None, compute: str | None
) -> None:
    found = offer(NodeFacts(**facts))
    assert (found.memory, found.compute) == (memory, compute)
    assert found.label == f"{memory or 'none'}-{compute or 'none'}"


def test_each_tier_that_is_not_offered_says_what_is_missing() -> None:
    found = offer(NodeFacts(driver="550.54.14", interposer="", mps="not chosen"))
    missing = {standing.tier: standing.missing for standing in found.standings}
    assert missing == {
        Tier.DRIVER: "driver 550.54.14 is older than release 615",
        Tier.INTERPOSER: "",
        Tier.MPS: "not chosen",
        Tier.DETECT: "",
    }
    assert [standing.offered for standing in found.standings] == [False, True, False, True]


def test_only_the_driver_promises_a_hard_memory_limit() -> None:
    hard = offer(NodeFacts(driver="615.36.01")).promise
    cooperative = offer(NodeFacts(driver="580.65.06")).promise
    assert "Hard memory limit" in hard
    assert "Cooperative isolation" in cooperative
    assert "Hard" not in cooperative
    assert "fate" in offer(NodeFacts(driver="580.65.06", mps="")).promise


@pytest.mark.parametrize(
    ("driver", "branch"), [("615.36.01", 615), ("580", 580), ("", None), ("N/A", None), ("²", None)]
)
def test_the_branch_of_a_driver(driver: str, branch: int | None) -> None:
    assert release(driver) == branch
