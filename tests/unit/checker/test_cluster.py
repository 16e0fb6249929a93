"""The report on a whole cluster, and the checker's independence."""

import ast
import random
from fractions import Fraction
from pathlib import Path

import pytest

import alnair.checker
from alnair.checker.objects.amounts import UnreadableError, amount, shown
from kit.checker.objects import container, found, group, node, pod, rules

ALLOWED = ("alnair.checker",)


def test_the_checker_shares_no_code_with_the_scheduler() -> None:
    folder = Path(alnair.checker.__file__).parent
    modules = sorted(folder.rglob("*.py"))
    assert len(modules) > 10
    for module in modules:
        for statement in ast.walk(ast.parse(module.read_text())):
            names = []
            if isinstance(statement, ast.Import):
                names = [alias.name for alias in statement.names]
            elif isinstance(statement, ast.ImportFrom):
                names = [statement.module or ""]
            for name in names:
                assert not name.startswith("alnair") or name.startswith(ALLOWED), (module, name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        (2, 2),
        ("100m", Fraction(1, 10)),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("12k", 12000),
        (".5", Fraction(1, 2)),
        ("1.", 1),
        ("3n", Fraction(3, 10**9)),
        ("-2Ki", -2048),
        ("0.1Ti", Fraction(2**40, 10)),
    ],
)
def test_quantities_are_exact(text: str, value: Fraction) -> None:
    assert amount(text) == value


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "0x1", "1e", "1e99999", "--1", "1_0"])
def test_what_is_no_quantity_is_told(text: str) -> None:
    with pytest.raises(UnreadableError):
        amount(text)


def test_amounts_are_shown_as_whole_numbers_where_they_are() -> None:
    assert (shown(Fraction(3)), shown(Fraction(1, 2))) == (3, 0.5)


def test_it_counts_nodes_pods_and_bound_ones() -> None:
    report = found([pod("a"), pod("b", on="")], [node("n"), node("m")])
    assert (report.nodes, report.pods, report.bound, report.violations) == (2, 2, 1, [])


def test_a_namespace_limits_what_is_reported_but_not_what_is_counted() -> None:
    pods = [pod("a", container(cpu=3)), pod("b", container(cpu=3), namespace="other")]
    pods.append(pod("c", on="gone", namespace="other"))
    report = found(pods, namespaces=frozenset({"d"}))
    assert report.pods == 1
    assert [v.rule for v in report.violations] == ["node-capacity"]
    assert rules([pods[2]], namespaces=frozenset({"d"})) == set()


def test_the_expected_number_of_pods_is_checked() -> None:
    assert rules([pod()], expected=1) == set()
    assert rules([pod()], expected=2) == {"pods-expected"}


def test_other_names_of_our_schedulers_can_be_given() -> None:
    from alnair.checker.cluster import check
    from alnair.checker.objects.state import cluster_of

    bad = pod("p", container(percent=10), scheduler="mine")
    assert not check(cluster_of([node(gpus=1)], [bad], [])).violations
    assert check(cluster_of([node(gpus=1)], [bad], [], frozenset({"mine"}))).violations


def test_a_random_full_cluster_is_clean_and_one_more_pod_breaks_it() -> None:
    draw = random.Random(5)
    nodes = [node(f"n{i}", allocatable={"cpu": "64", "pods": "200"}) for i in range(5)]
    pods = []
    for name in (entry["metadata"]["name"] for entry in nodes):
        left = 64_000
        while left:
            milli = min(left, draw.randint(1, 2000))
            left -= milli
            pods.append(pod(f"{name}-{left}", container(cpu=f"{milli}m"), on=name))
    assert found(pods, nodes).violations == []
    pods.append(pod("straw", container(cpu="1m"), on="n3"))
    (violation,) = found(pods, nodes).violations
    assert (violation.node, violation.used, violation.limit) == ("n3", 64.001, 64)


def test_two_groups_of_one_name_are_two_gangs() -> None:
    label = {"scheduling.x-k8s.io/pod-group": "g"}
    members = [pod("a", labels=label), pod("b", labels=label)]
    assert (
        rules(members, groups=[group(2), group(2, api="scheduling.sigs.k8s.io/v1alpha1")]) == set()
    )
    assert rules(members, groups=[group(2), group(3)]) == {"gang-whole"}
