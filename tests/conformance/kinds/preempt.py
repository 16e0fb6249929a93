"""Preempt cases: whether a pod may preempt, the candidates, and what is chosen of them."""

from collections.abc import Sequence
from typing import Any

from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.gangs.gangs import Gangs
from alnair.scheduler.plugins.default_preemption import DefaultPreemption
from alnair.scheduler.plugins.priority_sort import PrioritySort
from alnair.scheduler.preemption.dry_run import dry_run, ineligible, no_help
from alnair.scheduler.preemption.victim_search import Search
from alnair.scheduler.preemption.victims import VictimPlan
from alnair.scheduler.state.accounts import Record
from conformance.bench import Bench
from conformance.document import Case
from conformance.outcome import NotCoveredError, same
from conformance.plugins import plugin

UNRESOLVABLE = "UnschedulableAndUnresolvable"


def check(name: str, case: Case) -> None:
    """Raise unless the pod preempts as expected."""
    want = case.want["preempt"]
    known = {"eligible", "candidates", "nominated_node", "nominated_node_any_of"}
    if known.isdisjoint(want):
        raise NotCoveredError(f"preempt cases that want {', '.join(want)}")
    trial = Trial(name, case)
    if "eligible" in want:
        status = case.extra.get("nominatedNodeStatus") or {}
        same("eligible", not trial.ineligible(status.get("code")), want["eligible"])
        return
    plans, reasons = trial.candidates()
    if "candidates" in want:
        ours = [trial.described(found) for found in plans]
        same("candidates", sorted(ours, key=_node), sorted(want["candidates"], key=_node))
    best = min(plans, key=lambda p: p.cost, default=None)
    chosen = trial.described(best) if best else {"node": None, "victims": []}
    if "nominated_node_any_of" in want:
        same("nominated node", chosen["node"] in want["nominated_node_any_of"], True)
    if "nominated_node" in want:
        refused = trial.ineligible(_nominated_code(case))
        if refused:
            chosen = {"node": None, "victims": []}
        same("nominated node", chosen["node"], want["nominated_node"])
        same("victims", chosen["victims"], want["victims"])
        if not refused and best is None:
            refused = no_help(len(case.nodes), reasons)
        _check_status(refused, want)


class Trial:
    """The books of a case, and the pod that wants room."""

    def __init__(self, name: str, case: Case) -> None:
        self.bench = Bench(case)
        self.case = case
        self.post = plugin(name, case.args, case.gates)
        self.record = Record(self.bench.incoming)
        self.record.spec = self.bench.spec
        filters = [plugin(n, {}, {}) for n in case.extra.get("filterPlugins") or ()]
        self._search = Search(self.bench.accounts, Gangs())
        self._profile = Profile("conformance", [PrioritySort(), *filters])

    def ineligible(self, code: str | None) -> str:
        """Return why the pod may not preempt."""
        accounts = self.bench.accounts
        row = accounts.columns.row_of.get(self.record.pod.nominated, -1)
        here = accounts.on_row.get(row, {}).values()
        return ineligible(self.record.pod, here, hopeless=code == UNRESOLVABLE)

    def candidates(self) -> tuple[list[VictimPlan], list[Any]]:
        """Return the candidates among the nodes that were refused for now, and the refusals."""
        extra = self.case.extra
        evaluation = Evaluation(self.record.spec, self._profile, self.bench.accounts.cluster)
        if evaluation.refusal is not None:
            return [], []
        evaluation.refresh()
        rows = _rotated(self._potential(), extra.get("offset", 0))
        assert isinstance(self.post, DefaultPreemption)
        enough = extra.get("numCandidates", self.post.candidates(len(rows)))
        rules = self._search.rules(self.record, self.post, now=0.0)
        return dry_run(self.bench.accounts, evaluation, rows, rules, enough)

    def described(self, found: VictimPlan) -> dict[str, Any]:
        """Return a candidate as cases write it."""
        node = self.bench.accounts.columns.nodes[found.row]
        assert node is not None
        victims = sorted(v.pod.name for v in found.victims)
        return {"node": node.name, "victims": victims, "pdb_violations": found.violations}

    def _potential(self) -> list[int]:
        statuses = self.case.extra.get("nodeStatuses")
        names = sorted(self.bench.rows)
        if statuses is not None:
            names = [n for n in names if statuses.get(n, {}).get("code") == "Unschedulable"]
        return [self.bench.rows[n] for n in names]


def _check_status(refused: str, want: dict[str, Any]) -> None:
    status = want.get("status") or {"code": "Success", "reasons": []}
    reasons = [f"preemption: {refused}"] if refused else []
    same("status", "Unschedulable" if refused else "Success", status["code"])
    same("reasons", reasons, status["reasons"])


def _nominated_code(case: Case) -> str | None:
    nominated = ((case.pod or {}).get("status") or {}).get("nominatedNodeName")
    code = (case.extra.get("nodeStatuses") or {}).get(nominated, {}).get("code")
    return str(code) if code else None


def _rotated(rows: Sequence[int], offset: int) -> list[int]:
    start = offset % len(rows) if rows else 0
    return [*rows[start:], *rows[:start]]


def _node(candidate: dict[str, Any]) -> Any:
    return candidate["node"]
