"""kube-scheduler's own test cases decide alike here, code by code and reason by reason."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from alnair.kube import wire
from alnair.kube.projection import PodProjector, project_node
from alnair.model.workload import PodSpec
from alnair.scheduler.accounts import Accounts, Record, State
from alnair.scheduler.framework import FilterPlugin, Plugin, PreFilterPlugin, ScorePlugin
from alnair.scheduler.plugins.affinity import NodeAffinity
from alnair.scheduler.plugins.fit import NodeResourcesFit
from alnair.scheduler.plugins.node_name import NodeName
from alnair.scheduler.plugins.taints import TaintToleration
from alnair.scheduler.plugins.unschedulable import NodeUnschedulable

CASES = Path(__file__).parents[1] / "conformance" / "cases"
DEFAULT_RESOURCES = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
#: Gates that a plugin can be told of, and how.
COMPARING = "TaintTolerationComparisonOperators"


def read(kind: str) -> list[Any]:
    cases = []
    for path in sorted(CASES.glob(f"*_{kind}.json")):
        document = msgspec.json.decode(path.read_bytes())
        cases += [(document["plugin"], case) for case in document["cases"]]
    assert cases
    return [pytest.param(plugin, case, id=case["id"]) for plugin, case in cases]


def not_covered(case: Mapping[str, Any]) -> str:
    """Why the case is left to later, by feature; empty if it must pass now."""
    args = case["args"]
    strategy = args.get("scoringStrategy", {})
    if args.get("addedAffinity"):
        return "argument addedAffinity"
    if args.get("ignoredResources") or args.get("ignoredResourceGroups"):
        return "arguments ignoredResources and ignoredResourceGroups"
    if strategy.get("type", "LeastAllocated") not in ("LeastAllocated", "MostAllocated"):
        return f"scoring strategy {strategy['type']}"
    if sorted(strategy.get("resources", DEFAULT_RESOURCES), key=str) != DEFAULT_RESOURCES:
        return "scoring resources other than cpu and memory with weight 1, and their validation"
    if not case["default_gates"] and set(case["features"]) != {COMPARING}:
        return "feature gates " + ", ".join(case["features"])
    if case["want"].get("args_error"):
        return "validation of arguments"
    if case["want"].get("prescore", {}).get("code") == "Error":
        return "validation of affinity, which the API server does"
    return ""


def plugin_of(name: str, case: Mapping[str, Any]) -> Plugin:
    match name:
        case "TaintToleration":
            return TaintToleration(comparing=not case["default_gates"])
        case "NodeResourcesFit":
            strategy = case["args"].get("scoringStrategy", {}).get("type", "LeastAllocated")
            return NodeResourcesFit(strategy=strategy)
        case "NodeAffinity":
            return NodeAffinity()
        case "NodeName":
            return NodeName()
        case "NodeUnschedulable":
            return NodeUnschedulable()
    raise AssertionError(f"no plugin {name}")


class Bench:
    """The nodes and pods of a case in books of their own."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.accounts = Accounts()
        project = PodProjector()
        for node in case["nodes"]:
            self.accounts.put_node(project_node(msgspec.convert(node, wire.NodeWire)))
        for number, existing in enumerate(case["existing_pods"]):
            pod = project(msgspec.convert(existing, wire.PodWire))
            pod = msgspec.structs.replace(pod, uid=f"existing-{number}")
            self.accounts.place(Record(pod), pod.node, State.BOUND, 0.0)
        pod = project(msgspec.convert(case["pod"], wire.PodWire))
        assert not pod.problem
        # A pod that names its node is bound for us; the plugin can be asked all the same.
        self.spec: PodSpec = msgspec.structs.replace(pod.spec, node_name=pod.node)

    @property
    def rows(self) -> Mapping[str, int]:
        return self.accounts.columns.row_of


@pytest.mark.parametrize(("name", "case"), read("filter"))
def test_filters_agree_with_kube_scheduler(name: str, case: Mapping[str, Any]) -> None:
    if why := not_covered(case):
        pytest.skip(why)
    bench = Bench(case)
    plugin = plugin_of(name, case)
    assert isinstance(plugin, FilterPlugin)
    refusal = plugin.pre_filter(bench.spec) if isinstance(plugin, PreFilterPlugin) else None
    if refusal is not None:
        for want in case["want"]["filter"].values():
            assert want["code"] == "UnschedulableAndUnresolvable"
            assert want["reasons"] == [refusal.text]
        return
    compiled = plugin.filter(bench.spec, bench.accounts.cluster)
    everywhere = np.arange(bench.accounts.columns.n)
    for node, want in case["want"]["filter"].items():
        row = bench.rows[node]
        if compiled is None:
            assert want["code"] in ("Success", "Skip")
            continue
        reasons = [r for r, mask in compiled.reasons(everywhere) if mask[row]]
        passed = bool(compiled(everywhere)[row])
        assert passed == (not reasons), "reasons are given exactly where the filter refuses"
        assert passed == bool(compiled(slice(row, row + 1))[0]), "one row is judged as all are"
        if passed:
            code = "Success"
        elif any(r.unresolvable for r in reasons):
            code = "UnschedulableAndUnresolvable"
        else:
            code = "Unschedulable"
        assert code == want["code"].replace("Skip", "Success")
        if case.get("reasons_exact", True):
            assert sorted(r.text for r in reasons) == sorted(want["reasons"])


@pytest.mark.parametrize(("name", "case"), read("score"))
def test_scores_agree_with_kube_scheduler(name: str, case: Mapping[str, Any]) -> None:
    if why := not_covered(case):
        pytest.skip(why)
    bench = Bench(case)
    plugin = plugin_of(name, case)
    assert isinstance(plugin, ScorePlugin)
    compiled = plugin.score(bench.spec, bench.accounts.cluster)
    rows = slice(0, bench.accounts.columns.n)
    candidates = np.ones(bench.accounts.columns.n, bool)
    for node in case["extra"].get("filtered_out_nodes", ()):
        candidates[bench.rows[node]] = False
    if case["want"].get("prescore", {}).get("code") == "Skip":
        assert compiled is None or len(set(compiled(rows))) <= 1
        return
    if compiled is None:  # the same everywhere
        assert len(set(case["want"]["scores"].values())) <= 1
        return
    scores = compiled(rows)
    if compiled.normalize is not None:
        scores = compiled.normalize(scores, candidates)
    assert {node: scores[bench.rows[node]] for node in case["want"]["scores"]} == case["want"][
        "scores"
    ]


@pytest.mark.parametrize(("name", "case"), read("podrequest"))
def test_scoring_counts_requests_as_kube_scheduler_does(name: str, case: Mapping[str, Any]) -> None:
    spec = Bench(case).spec
    counted = {"cpu": spec.scored_cpu, "memory": spec.scored_memory}
    assert counted == case["want"]["score_requests"], name
