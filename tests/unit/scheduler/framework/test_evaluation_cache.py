"""How many evaluations are kept: as many as there is memory for, which depends on the nodes."""

from alnair.scheduler.framework.evaluation_cache import Evaluations, kept
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.accounts import Accounts
from kit import make


def test_a_small_cluster_keeps_the_evaluations_of_a_thousand_classes() -> None:
    accounts = Accounts()
    accounts.put_node(make.node("a", cpu=64_000))
    evaluations, profile = Evaluations(accounts.cluster), profiles()[0]
    specs = [make.spec(cpu=cpu) for cpu in range(1, 1001)]
    first = [evaluations.of(spec, profile) for spec in specs]
    assert all(evaluations.of(spec, profile) is e for spec, e in zip(specs, first, strict=True))


def test_the_least_recently_used_evaluation_goes_when_there_are_too_many() -> None:
    accounts = Accounts()
    accounts.put_node(make.node("a", cpu=64_000))
    evaluations, profile = Evaluations(accounts.cluster), profiles()[0]
    most = kept(accounts.columns.n)
    used, other = make.spec(cpu=1), make.spec(cpu=2)
    of_used, of_other = evaluations.of(used, profile), evaluations.of(other, profile)
    for cpu in range(3, most + 2):
        evaluations.of(make.spec(cpu=cpu), profile)
        evaluations.of(used, profile)
    assert len(evaluations) == most
    assert evaluations.of(used, profile) is of_used
    assert evaluations.of(other, profile) is not of_other


def test_more_are_kept_the_fewer_nodes_there_are_and_never_less_than_256() -> None:
    assert kept(1_213) > 800
    assert [kept(nodes) for nodes in (5_000, 50_000, 10_000_000)] == [256] * 3
