"""Score cases: the plugin's score of each node before its weight, or why there is none."""

from typing import cast

from alnair.scheduler.framework.arguments import ArgumentError
from alnair.scheduler.framework.extension_points import (
    Depends,
    PodsScore,
    PreScorePlugin,
    Score,
    ScorePlugin,
)
from alnair.scheduler.state.nodes.columns import Column
from conformance.bench import Bench
from conformance.document import Case
from conformance.kinds.filters import compare
from conformance.outcome import Mismatch, NotCoveredError, same
from conformance.plugins import plugin


def check(name: str, case: Case) -> None:
    """Raise unless scoring answers as expected."""
    known = {"args_error", "prescore", "score_status", "scores", "raw_scores"}
    if known.isdisjoint(case.want):
        raise NotCoveredError(f"score cases that want {', '.join(case.want)}")
    try:
        scorer = plugin(name, case.args, case.gates)
    except ArgumentError:
        if "args_error" in case.want:
            return
        raise
    if "args_error" in case.want:
        raise Mismatch(f"the arguments are taken, expected: {case.want['args_error']}")
    if not isinstance(scorer, ScorePlugin):
        raise NotCoveredError(f"plugin {name} does not score")
    bench = Bench(case)
    refusal = scorer.pre_score(bench.spec) if isinstance(scorer, PreScorePlugin) else None
    status = ("Error", [refusal.text]) if refusal else ("Success", [])
    if wanted := case.want.get("score_status"):
        compare("score", status, wanted, reasons=case.reasons_exact)
    prescore = case.want.get("prescore", {"code": "Success"})
    if not wanted:
        compare("prescore", status, prescore, reasons=case.reasons_exact)
    if refusal:
        return
    compiled = scorer.score(bench.spec, bench.accounts.cluster)
    if prescore["code"] == "Skip":
        _check_nothing_added(compiled, bench)
    _check_scores(compiled, bench, case)


def _raw(score: Score | PodsScore, bench: Bench) -> Column:
    if score.depends is Depends.PODS:
        return cast("PodsScore", score).over(bench.candidates())
    return cast("Score", score)(bench.everywhere())


def _final(score: Score | PodsScore, bench: Bench) -> Column:
    raw = _raw(score, bench)
    return raw if score.normalize is None else score.normalize(raw, bench.candidates())


def _check_nothing_added(score: Score | PodsScore | None, bench: Bench) -> None:
    """Raise if the score prefers any candidate: adding the same everywhere is adding nothing."""
    if score is None or not bench.accounts.columns.n:
        return
    scores = _final(score, bench)
    if len(set(scores[bench.candidates()])) > 1:
        raise Mismatch(f"scores {list(scores)} here, expected to add nothing")


def _check_scores(score: Score | PodsScore | None, bench: Bench, case: Case) -> None:
    for key in ("raw_scores", "scores"):
        wanted = case.want.get(key)
        if wanted is None:
            continue
        if score is None:
            # None says that all nodes are alike, and nothing of the level, which changes no choice.
            if len(set(wanted.values())) > 1:
                raise Mismatch(f"no scores here, {wanted} expected")
            continue
        if key == "raw_scores" and score.normalize is None:
            continue  # what is normalised upstream may come out final here
        scores = _raw(score, bench) if key == "raw_scores" else _final(score, bench)
        ours = {node: float(scores[bench.rows[node]]) for node in wanted}
        same(key, ours, {node: float(number) for node, number in wanted.items()})
    if score is not None and score.depends is not Depends.PODS:
        own = cast("Score", score)
        alone = [float(own(slice(row, row + 1))[0]) for row in bench.everywhere()]
        same("scores of rows one by one", alone, [float(x) for x in _raw(score, bench)])
