"""What evictions of ours leave of a gang: enough of it, or nothing."""

from typing import Any

import pytest

from alnair.checker.over_time.live_check import Watching
from kit.checker.objects import group, node, pod, rules
from kit.checker.worlds import member

API = "scheduling.x-k8s.io/v1alpha1"
LABELS = {"scheduling.x-k8s.io/pod-group": "g"}
PREEMPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "alnair-scheduler: preempting to accommodate a higher priority pod",
}


class Gang:
    """A gang of four on one node, that waits for nobody."""

    def __init__(self, least: int = 4, elastic: int = 0, *, placed: bool = True) -> None:
        self.now = 0.0
        self.watching = Watching()
        self.watching.nodes([node()], [], self.now)
        made = group(least)
        if elastic:
            made["metadata"]["annotations"]["ai.centaurus.io/elastic-min"] = str(elastic)
        if placed:
            made["status"] = {"conditions": [{"type": "InitiallyScheduled", "status": "True"}]}
        self.watching.gangs.take(API, [made], [], self.now)
        start = [self.member(i) for i in range(4)]
        # Somebody above them waits, so that the preemption itself is in order.
        start.append(pod("high", on="", spec={"priority": 9}))
        self.watching.pods(start, [], self.now)

    def member(self, number: int, **changes: Any) -> dict[str, Any]:
        return pod(f"g-{number}", labels=LABELS, **changes)

    def see(self, kind: str, *members: dict[str, Any]) -> None:
        self.now += 1.0
        self.watching.pods(None, [(kind, one) for one in members], self.now)

    def preempt(self, *numbers: int) -> None:
        for number in numbers:
            leaving = self.member(number, deleting=True)
            leaving["status"]["conditions"] = [PREEMPTED]
            self.see("MODIFIED", leaving)
            self.see("DELETED", leaving)

    def rules(self) -> list[str]:
        self.now += 120.0
        self.watching.tick(self.now)
        return [violation.rule for violation in self.watching.violations]


@pytest.mark.parametrize(
    ("least", "elastic", "gone", "broken"),
    [
        (4, 0, (0,), True),
        (4, 0, (0, 1, 2, 3), False),
        (3, 0, (0,), False),
        (4, 2, (0, 1), False),
        (4, 2, (0, 1, 2), True),
        (4, 2, (0, 1, 2, 3), False),
        (4, 1, (0, 1, 2), False),
    ],
)
def test_evictions_leave_the_minimum_or_nothing(
    least: int, elastic: int, gone: tuple[int, ...], broken: bool
) -> None:
    gang = Gang(least, elastic)
    gang.preempt(*gone)
    assert gang.rules() == (["gang-minimum"] if broken else [])


def test_before_it_was_placed_an_elastic_gang_goes_whole() -> None:
    gang = Gang(4, 2, placed=False)
    gang.preempt(0)
    assert gang.rules() == ["gang-minimum"]


def test_members_that_are_replaced_in_time_are_there() -> None:
    gang = Gang()
    gang.preempt(0)
    gang.see("ADDED", gang.member(7))
    assert gang.rules() == []


def test_members_that_were_lost_in_another_way_are_not_our_doing() -> None:
    gang = Gang(4, 3)
    gang.see("DELETED", gang.member(0))
    gang.preempt(1)
    assert gang.rules() == []


def test_a_single_look_takes_a_shrunk_gang_for_whole() -> None:
    made = group(4)
    made["metadata"]["annotations"]["ai.centaurus.io/elastic-min"] = "1"
    pods = [member("a", "n"), member("b", "n")]
    assert rules(pods, groups=[made]) == {"gang-whole"}
    made["status"] = {"phase": "Running"}
    assert rules(pods, groups=[made]) == set()
