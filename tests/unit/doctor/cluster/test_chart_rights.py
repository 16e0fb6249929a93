"""Each component has the rights that it was seen to use, and no others: the chart's least ones."""

import pytest

from alnair.doctor.cluster.chart_rights import Right, rights_by_component
from kit import rights

COMPONENTS = ("agent", "controller", "scheduler")


def test_a_rule_gives_each_verb_on_each_kind_of_each_group_where_it_is_bound() -> None:
    documents = [
        {
            "kind": "Role",
            "metadata": {"name": "alnair-x"},
            "rules": [
                {"apiGroups": ["", "g.io"], "resources": ["as", "bs/status"], "verbs": ["get"]}
            ],
        },
        {
            "kind": "RoleBinding",
            "metadata": {"name": "b", "namespace": "n"},
            "roleRef": {"kind": "Role", "name": "alnair-x"},
            "subjects": [{"kind": "ServiceAccount", "name": "alnair-x"}],
        },
    ]
    names = ("as", "as.g.io", "bs/status", "bs/status.g.io")
    assert rights_by_component(documents) == {"x": {Right("get", name, "n") for name in names}}
    assert Right("get", "as", "").gives(Right("get", "as", "n"))
    assert not Right("get", "as", "n").gives(Right("get", "as", ""))
    assert Right("get", "bs/status.g.io", "n").attributes == {
        "verb": "get",
        "group": "g.io",
        "resource": "bs",
        "subresource": "status",
        "namespace": "n",
    }


@pytest.mark.parametrize("component", COMPONENTS)
def test_no_request_that_a_component_was_seen_to_make_is_refused(component: str) -> None:
    given, asked = rights.given()[component], rights.recorded()[component]
    assert len(asked) > 10
    assert [one for one in asked if not any(right.gives(one) for right in given)] == []


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_has_no_right_that_nothing_uses_unless_a_reason_is_given(
    component: str,
) -> None:
    given, asked = rights.given()[component], rights.recorded()[component]
    unused = {right for right in given if not any(right.gives(one) for one in asked)}
    excused = {right for name, right in rights.EXCUSED if name == component}
    assert unused - excused == set(), "take it from the chart, or say why in kit.rights"
    assert excused - unused == set(), "it is used, or not given: no excuse is needed"


def test_only_components_of_the_chart_have_rights() -> None:
    given = rights.given()
    assert given.pop("debug") == set(), "pages of no resource are all that it may read"
    assert set(given) - {"doctor"} == set(COMPONENTS) == set(rights.recorded())
