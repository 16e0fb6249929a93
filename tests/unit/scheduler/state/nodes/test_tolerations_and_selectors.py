"""Selectors and tolerations, where they are odd."""

import pytest

from alnair.model.nodes import Taint
from alnair.model.workload import Requirement, Term, Toleration
from alnair.scheduler.framework.selector_validation import is_well_formed
from alnair.scheduler.state.nodes.integers import parse_int
from alnair.scheduler.state.nodes.tolerations import tolerated


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("", None),
        ("1_000", None),
        (" 1", None),
        ("1.0", None),
        ("0x1", None),
        ("\u0661", None),
        ("1" * 5000, None),
    ],
)
def test_integers_are_read_as_go_reads_them(text: str, want: int | None) -> None:
    assert parse_int(text) == want


@pytest.mark.parametrize(
    ("requirement", "want"),
    [
        (Requirement("zone", "In", ("a", "")), True),
        (Requirement("example.com/zone", "NotIn", ("a",)), True),
        (Requirement("zone", "Exists"), True),
        (Requirement("zone", "Gt", ("5",)), True),
        (Requirement("zone", "In"), False),
        (Requirement("zone", "In", ("no spaces",)), False),
        (Requirement("zone", "In", ("x" * 64,)), False),
        (Requirement("zone", "Exists", ("a",)), False),
        (Requirement("zone", "Gt", ("5", "6")), False),
        (Requirement("zone", "Lt", ("five",)), False),
        (Requirement("zone", "Gt", ("-5",)), False),  # an integer, but no label value
        (Requirement("zone", "Like", ("a",)), False),
        (Requirement("", "Exists"), False),
        (Requirement("/zone", "Exists"), False),
        (Requirement("Bad Prefix/zone", "Exists"), False),
    ],
)
def test_malformed_label_requirements_are_found(requirement: Requirement, want: bool) -> None:
    assert is_well_formed(Term((requirement,))) == want


def test_fields_take_one_value() -> None:
    assert is_well_formed(Term((), (Requirement("metadata.name", "In", ("n",)),)))
    assert not is_well_formed(Term((), (Requirement("metadata.name", "In", ("n", "m")),)))
    assert not is_well_formed(Term((), (Requirement("metadata.name", "Exists"),)))


TAINT = Taint("k", "NoSchedule", "5")


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        (Toleration("k", "Equal", "5", "NoSchedule"), True),
        (Toleration("k", "", "5"), True),
        (Toleration("k", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", "", "NoExecute"), False),
        (Toleration("k", "Equal", "6"), False),
        (Toleration("", "Equal", "5"), False),
        (Toleration("other", "Exists"), False),
        (Toleration("k", "Sometimes", "5"), False),
        (Toleration("k", "Gt", "4"), False),
    ],
)
def test_a_toleration_covers_a_taint(toleration: Toleration, want: bool) -> None:
    assert tolerated(TAINT, [toleration]) == want


@pytest.mark.parametrize(
    ("operator", "value", "want"),
    [
        ("Gt", "4", True),
        ("Gt", "5", False),
        ("Lt", "6", True),
        ("Lt", "5", False),
        ("Lt", "x", False),
    ],
)
def test_comparing_operators_count_where_their_gate_is_on(
    operator: str, value: str, want: bool
) -> None:
    assert tolerated(TAINT, [Toleration("k", operator, value)], comparing=True) == want
