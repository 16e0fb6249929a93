"""The search for victims: the best node of all, and no victim too many."""

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest

from alnair.model import names
from alnair.scheduler.framework.arguments import made
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.gangs.gangs import Gangs
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.plugins.default_preemption import DefaultPreemption, PreemptionArgs
from alnair.scheduler.preemption.dry_run import dry_run
from alnair.scheduler.preemption.victim_search import Search
from alnair.scheduler.preemption.victims import VictimPlan
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.disruption_budgets import KIND as BUDGETS
from alnair.scheduler.state.disruption_budgets import budgets, split
from alnair.scheduler.state.without_pods import WithoutPods
from kit import invariants, make

OURS: Profile = next(p for p in profiles() if p.scheduler == names.SCHEDULER)
POST = DefaultPreemption(PreemptionArgs(idle_seconds=0.0))
NOW = 1000.0


class Setting:
    """A random cluster that is full, and a pod that fits nowhere."""

    def __init__(self, seed: int, *, nodes: int = 8, budgets: bool = True) -> None:
        chance = self.chance = random.Random(seed)
        self.accounts = Accounts(seed)
        self.evaluations = Evaluations(self.accounts.cluster)
        self.search = Search(self.accounts, Gangs())
        for i in range(nodes):
            gpus = chance.choice((0, 2, 3))
            self.accounts.put_node(make.node(f"n{i}", cpu=4000, gpus=gpus, gpu_memory=16384))
        if budgets:
            for i in range(chance.randrange(3)):
                budget = make.budget(f"b{i}", chance.randrange(2), app=chance.choice("ab"))
                self.accounts.objects.put(BUDGETS, ("default", budget.name), budget)
        for i in range(nodes * 6):
            self._fill(i)
        self.gpu = chance.random() < 0.5
        self.record = self._preemptor()
        self.evaluation = self.evaluations.of(self.record.spec, OURS)

    def _fill(self, i: int) -> None:
        chance = self.chance
        cpu = chance.choice((500, 1000, 1500))
        asked = make.spec(cpu=cpu)
        if (kind := chance.random()) < 0.3:
            asked = make.spec(cpu=cpu // 5, slice_mib=chance.choice((4096, 8192, 12288)))
        elif kind < 0.45:
            asked = make.spec(cpu=cpu // 5, whole=1)
        pod = make.pod(
            f"p{i}",
            asked,
            priority=chance.choice((-5, 0, 0, 1, 2, 9)),
            started=float(chance.randrange(4)),
            labels={"app": chance.choice("abc")},
            idle_since=chance.choice((0.0, 0.0, 0.0, 1.0)),
            reclaimable=chance.choice(("", "idle")),
        )
        record = Record(pod)
        statement = Statement(self.accounts, self.evaluations, 0.0)
        if statement.place(record, OURS) is None:
            record.state = State.BOUND
            self.accounts.records[pod.uid] = record

    def _preemptor(self) -> Record:
        """Grow a pod until it fits nowhere."""
        for size in range(1, 8):
            asked = make.spec(cpu=500 * size)
            if self.gpu:
                asked = make.spec(cpu=100, slice_mib=2048 * size)
                if self.chance.random() < 0.3:
                    asked = make.spec(cpu=100, whole=1 + size % 2)
            record = Record(make.pod("preemptor", asked, priority=self.chance.choice((1, 2, 5))))
            if self.evaluations.of(asked, OURS).best() is None:
                break
        return record

    def all_plans(self) -> list[VictimPlan]:
        """Return the candidates of all nodes where victims may help."""
        rows = np.flatnonzero(self.evaluation.resolvable())
        rules = self.search.rules(self.record, POST, NOW)
        return dry_run(self.accounts, self.evaluation, map(int, rows), rules, len(rows))[0]


def useful(settings: Sequence[Setting]) -> list[Setting]:
    return [s for s in settings if s.evaluation.refusal is None and s.evaluation.best() is None]


@pytest.mark.parametrize("block", range(10))
def test_the_choice_among_all_nodes_is_that_of_trying_them_all(block: int) -> None:
    found = 0
    for setting in useful([Setting(block * 20 + i) for i in range(20)]):
        plans = setting.all_plans()
        best = setting.search.best(setting.record, setting.evaluation, POST, NOW)
        assert (best is None) == (not plans)
        if best is not None:
            assert best.cost == min(p.cost for p in plans)
            assert {v.pod.uid for v in best.victims} in [
                {v.pod.uid for v in p.victims} for p in plans if p.cost == best.cost
            ]
            found += 1
    assert found > 5


def test_the_bounds_never_exceed_what_victims_cost() -> None:
    for setting in useful([Setting(i) for i in range(60)]):
        search, record, evaluation = setting.search, setting.record, setting.evaluation
        bounds = search.bounds(record, evaluation)
        for plan in setting.all_plans():
            row = np.array([plan.row])
            keys = search.keys(record, evaluation, bounds, row, NOW)
            assert (0, *(float(key[0]) for key in keys)) <= plan.cost


def fits_without(setting: Setting, row: int, victims: Sequence[Record]) -> bool:
    with WithoutPods(setting.accounts) as trial:
        for record in victims:
            trial.lift(record)
        return setting.evaluation.accepts(row)


def test_no_victim_could_stay_and_none_more_important_than_needed_goes() -> None:
    """Against all subsets of the pods on a node."""
    checked = 0
    for setting in useful([Setting(i, nodes=3, budgets=False) for i in range(120)]):
        rules = setting.search.rules(setting.record, POST, NOW)
        for plan in setting.all_plans():
            here = rules.eligible(setting.accounts.on_row[plan.row].values())
            if len(here) > 9:
                continue
            for victim in plan.victims:
                others = [v for v in plan.victims if v is not victim]
                assert not fits_without(setting, plan.row, others), "a victim too many"
            sets = itertools.chain.from_iterable(
                itertools.combinations(here, n) for n in range(1, len(here) + 1)
            )
            lowest = min(
                max(map(rules.losses.rank, chosen))
                for chosen in sets
                if fits_without(setting, plan.row, chosen)
            )
            assert max(map(rules.losses.rank, plan.victims)) == lowest
            checked += 1
    assert checked > 30


def test_slices_of_one_size_go_from_as_few_gpus_as_can_be() -> None:
    """Against all subsets: of equal slices and priorities, the fewest that make room."""
    for seed in range(40):
        chance = random.Random(seed)
        accounts = Accounts(seed)
        evaluations = Evaluations(accounts.cluster)
        accounts.put_node(make.node("n", gpus=3, gpu_memory=16000))
        for i in range(chance.randrange(4, 9)):
            record = Record(make.pod(f"p{i}", make.spec(slice_mib=4000), started=float(i)))
            profile = chance.choice(profiles())
            if Statement(accounts, evaluations, 0.0).place(record, profile) is None:
                record.state = State.BOUND
                accounts.records[record.pod.uid] = record
        preemptor = Record(make.pod("p", make.spec(slice_mib=16000), priority=1))
        evaluation = evaluations.of(preemptor.spec, OURS)
        if evaluation.best() is not None:
            continue
        search = Search(accounts, Gangs())
        best = search.best(preemptor, evaluation, POST, NOW)
        assert best is not None
        tenants = np.zeros(3)
        for record in accounts.on_row[0].values():
            tenants[record.bookings[0].slot] += 1
        assert len(best.victims) == tenants.min()


def test_a_search_leaves_the_books_as_they_were() -> None:
    for setting in useful([Setting(i) for i in range(20)]):
        accounts = setting.accounts
        order = {row: list(pods) for row, pods in accounts.on_row.items()}
        before = accounts.columns.free.copy(), accounts.columns.booked.end
        setting.search.best(setting.record, setting.evaluation, POST, NOW)
        assert (accounts.columns.free == before[0]).all()
        assert accounts.columns.booked.end == before[1]
        assert {row: list(pods) for row, pods in accounts.on_row.items()} == order
        invariants.check_books(accounts)
        kept = setting.evaluations.of(setting.record.spec, OURS)
        fresh = Evaluation(setting.record.spec, OURS, accounts.cluster)
        fresh.refresh()
        assert (kept.rank == fresh.rank).all()


def test_budgets_count_down_in_the_order_of_the_pods() -> None:
    accounts = Accounts()
    accounts.objects.put(BUDGETS, ("default", "b"), make.budget("b", 1, app="a"))
    accounts.objects.put(BUDGETS, ("other", "b"), make.budget("b", 0))
    pods = [Record(make.pod(n, labels={"app": a})) for n, a in (("x", "a"), ("y", "a"), ("z", "b"))]
    violating, others = split(pods, budgets(accounts.objects))
    assert [r.pod.name for r in violating] == ["y"]
    assert [r.pod.name for r in others] == ["x", "z"]


@pytest.mark.parametrize(
    ("nodes", "percentage", "absolute", "wanted"),
    [(5000, 10, 100, 500), (300, 10, 100, 100), (40, 10, 100, 40), (1000, 0, 7, 7)],
)
def test_as_many_candidates_suffice_as_kube_scheduler_takes(
    nodes: int, percentage: int, absolute: int, wanted: int
) -> None:
    args = PreemptionArgs(
        min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute
    )
    assert DefaultPreemption(args).candidates(nodes) == wanted


def test_arguments_out_of_range_are_refused_with_their_names() -> None:
    args = PreemptionArgs(
        min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=0, idle_seconds=-1.0
    )
    problems = "; ".join(args.problems())
    assert "minCandidateNodesAbsolute" in problems
    assert "idleSeconds" in problems


@pytest.mark.parametrize(
    ("policy", "word", "idle"),
    [
        ("opt-in", "idle", True),
        ("opt-in", "", False),
        ("always", "", True),
        ("always", "never", False),
        ("never", "idle", False),
    ],
)
def test_the_profile_and_the_owner_say_together_which_idle_pods_go(
    policy: str, word: str, idle: bool
) -> None:
    plugin = made(DefaultPreemption, {"reclaimIdle": policy, "idleSeconds": 60})
    pod = make.pod(idle_since=100.0, reclaimable=word)
    assert plugin.is_idle(pod, 161.0) == idle
    assert not plugin.is_idle(pod, 159.0)
