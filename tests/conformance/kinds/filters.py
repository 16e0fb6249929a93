"""Filter cases: what PreFilter and Filter decide together about each node."""

from collections.abc import Iterable, Mapping
from typing import Any

from alnair.scheduler.framework.extension_points import (
    Depends,
    FilterPlugin,
    PreFilterPlugin,
    Reason,
    Refusal,
)
from conformance.bench import Bench
from conformance.document import Case
from conformance.outcome import Mismatch, NotCoveredError, same
from conformance.plugins import plugin

#: A code, and the texts of its reasons.
Status = tuple[str, list[str]]


def check(name: str, case: Case) -> None:
    """Raise unless every node is judged as expected."""
    if "filter" not in case.want:
        raise NotCoveredError(f"filter cases that want {', '.join(case.want)}")
    filter_plugin = plugin(name, case.args, case.gates)
    statuses = Judge(filter_plugin, Bench(case))
    if not case.want["filter"] and "prefilter" in case.want:  # there is no node to tell by
        same("prefilter, code", statuses.before(), case.want["prefilter"]["code"])
    for node, want in case.want["filter"].items():
        compare(f"node {node}", statuses.of(node), want, reasons=case.reasons_exact)


def compare(what: str, ours: Status, want: Mapping[str, Any], *, reasons: bool) -> None:
    """Raise unless the status is the wanted one; Skip is as good as Success."""
    code, texts = ours
    same(f"{what}, code", code, want["code"].replace("Skip", "Success"))
    if reasons:
        same(f"{what}, reasons", sorted(texts), sorted(want.get("reasons") or ()))


class Judge:
    """What one filter plugin says about the nodes of a bench."""

    def __init__(self, filter_plugin: Any, bench: Bench) -> None:
        self._bench = bench
        spec = bench.spec
        self._refusal: Refusal | None = None
        if isinstance(filter_plugin, PreFilterPlugin):
            self._refusal = filter_plugin.pre_filter(spec)
        self._filter = None
        if self._refusal is None and isinstance(filter_plugin, FilterPlugin):
            self._filter = filter_plugin.filter(spec, bench.accounts.cluster)

    def before(self) -> str:
        """Return the code of PreFilter, whatever the nodes."""
        if self._refusal is not None:
            return "UnschedulableAndUnresolvable"
        return "Skip" if self._filter is None else "Success"

    def of(self, node: str) -> Status:
        """Return the status of a node."""
        if self._refusal is not None:
            return "UnschedulableAndUnresolvable", [self._refusal.text]
        if self._filter is None:
            return "Success", []
        row = self._bench.rows[node]
        everywhere = self._bench.everywhere()
        found = [r for r, mask in self._filter.reasons(everywhere) if mask[row]]
        passed = bool(self._filter(everywhere)[row])
        if passed == bool(found):
            raise Mismatch(f"node {node}: the filter says {passed}, its reasons are {found}")
        alone = self._filter(slice(row, row + 1))[0]
        if self._filter.depends is not Depends.PODS and passed != bool(alone):
            raise Mismatch(f"node {node}: judged alone it is not judged as among all")
        return code_of(found), [r.text for r in found]


def code_of(reasons: Iterable[Reason]) -> str:
    """Return the code that the reasons make up."""
    reasons = list(reasons)
    if not reasons:
        return "Success"
    if any(r.error for r in reasons):
        return "Error"
    if any(r.unresolvable for r in reasons):
        return "UnschedulableAndUnresolvable"
    return "Unschedulable"
