"""Every rule: objects that break it, and objects at the limit that do not."""

import pytest

from alnair.checker.cluster import check
from alnair.checker.objects.state import cluster_of
from alnair.checker.registry import CLUSTER_RULES, GANG_RULES, NODE_RULES, POD_RULES
from alnair.checker.violation import Violation
from kit.checker.worlds import Objects, slice_pod, world

from .broken_rules import BAD
from .kept_rules import GOOD


def violations(objects: Objects) -> list[Violation]:
    return check(cluster_of(**objects)).violations


def cases(table: dict[str, list[tuple[str, Objects]]]) -> list[object]:
    return [
        pytest.param(rule, objects, id=f"{rule}: {said}")
        for rule, entries in table.items()
        for said, objects in entries
    ]


@pytest.mark.parametrize(("rule", "objects"), cases(BAD))
def test_bad_objects_break_the_rule(rule: str, objects: Objects) -> None:
    assert rule in {violation.rule for violation in violations(objects)}


@pytest.mark.parametrize(("rule", "objects"), cases(GOOD))
def test_objects_within_the_limit_break_nothing(rule: str, objects: Objects) -> None:
    assert violations(objects) == []


def test_every_rule_has_objects_on_both_sides_of_its_limit() -> None:
    rules = {*NODE_RULES, *POD_RULES, *GANG_RULES, *CLUSTER_RULES}
    assert set(BAD) == rules
    assert set(GOOD) == rules


def test_a_violation_says_what_where_used_and_limit() -> None:
    found = violations(world(slice_pod("a", 15000, 10), slice_pod("b", 1001, 10)))
    assert found == [Violation("gpu-memory", "alnair/vgpu-memory", "n", "n-0", 16001, 16000)]
    assert str(found[0]) == (
        "gpu-memory: alnair/vgpu-memory on node n, GPU n-0: found 16001, allowed 16000"
    )
