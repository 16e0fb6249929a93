"""What a plugin's filter and score must keep, checked on the cluster as it is."""

import random
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import (
    Depends,
    FilterPlugin,
    PodsScore,
    Score,
    ScorePlugin,
)
from alnair.scheduler.framework.score_weights import PARTS
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows
from alnair.testing.read_only_arrays import read_only

#: Rows that are asked for one by one.
_SINGLE_ROWS = 4


class ContractError(AssertionError):
    """A plugin breaks its contract; says which rule, how, and what to do."""


def check_filter(
    plugin: FilterPlugin, spec: PodSpec, cluster: Cluster, chance: random.Random
) -> None:
    """Check that the filter answers soundly, and that its reasons are for what it refuses.

    Raises:
        ContractError: It does not.
    """
    compiled = plugin.filter(spec, cluster)
    if compiled is None:
        return
    n, what = cluster.columns.n, f"{plugin.name}: filter"
    everything = slice(0, n)
    full = _ask(what, compiled, everything, cluster)
    if full.dtype != bool:
        raise ContractError(f"{what} answers {full.dtype}: answer an array of True and False")
    if compiled.depends is not Depends.PODS:
        _check_slices(what, compiled, full, cluster, chance)
    refused = np.zeros(n, bool)
    with read_only(cluster):
        reasons = _guarded(what, lambda: list(compiled.reasons(everything)))
    for reason, mask in reasons:
        _check_shape(f"{what}: reason {reason.text!r}", mask, n)
        if not reason.text:
            raise ContractError(f"{what} gives a reason without a text: say why, for people")
        refused |= mask
    alive = cluster.columns.alive[:n]
    for row in np.flatnonzero((refused != ~full) & alive):
        node = cluster.columns.nodes[row]
        gives = "gives a reason against" if refused[row] else "gives no reason against"
        says = "accepts" if full[row] else "refuses"
        raise ContractError(f"{what} {says} node {node.name if node else row}, but {gives} it")


def check_score(
    plugin: ScorePlugin, spec: PodSpec, cluster: Cluster, chance: random.Random
) -> None:
    """Check that scores are 0 to 100 in the end, and the same for parts as for the whole.

    A plugin with a finer scale says its highest score by `most`, or that it has parts of points by
    `fine`.

    Raises:
        ContractError: They are not.
    """
    compiled = plugin.score(spec, cluster)
    if compiled is None:
        return
    n, what, most = cluster.columns.n, f"{plugin.name}: score", getattr(plugin, "most", 100)
    parts = PARTS if getattr(plugin, "fine", False) else 1
    if compiled.depends is not Depends.PODS:
        score = cast("Score", compiled)
        full = _ask(what, score, slice(0, n), cluster)
        _check_slices(what, score, full, cluster, chance)
    will_do = feasible(plugin, spec, cluster)
    with read_only(cluster):
        values = _guarded(what, lambda: normalized(compiled, will_do, n))
    _check_shape(what, values, n)
    for row in np.flatnonzero(will_do):
        value, node = values[row], cluster.columns.nodes[row]
        if not 0 <= value <= most or value * parts != int(value * parts):
            kind = f"a multiple of 1/{parts}" if parts > 1 else "a whole number"
            raise ContractError(
                f"{what} gives node {node.name if node else row} {value}: it must be {kind}"
                f" from 0 to {most}, if need be by `normalize`"
            )


def feasible(plugin: object, spec: PodSpec, cluster: Cluster) -> Mask:
    """Return the rows that the plugin itself accepts."""
    n = cluster.columns.n
    mask: Mask = cluster.columns.alive[:n].copy()
    if isinstance(plugin, FilterPlugin):
        compiled = plugin.filter(spec, cluster)
        if compiled is not None:
            mask &= compiled(slice(0, n))
    return mask


def normalized(compiled: Score | PodsScore, will_do: Mask, n: int) -> Column:
    """Return the scores of all rows as they count."""
    if compiled.depends is Depends.PODS:
        raw = cast("PodsScore", compiled).over(will_do)
    else:
        raw = cast("Score", compiled)(slice(0, n))
    return raw if compiled.normalize is None else compiled.normalize(raw, will_do)


def _check_slices(
    what: str,
    compiled: Callable[[Rows], Any],
    full: np.ndarray[Any, Any],
    cluster: Cluster,
    chance: random.Random,
) -> None:
    """Check that single rows and picked rows get the answer that they have among all."""
    n = len(full)
    picked = np.array([row for row in range(n) if chance.random() < 0.5], np.intp)
    single = chance.sample(range(n), min(n, _SINGLE_ROWS))
    parts: list[Rows] = [slice(row, row + 1) for row in single]
    if len(picked):
        parts.append(picked)
    for rows in parts:
        part = _ask(what, compiled, rows, cluster)
        if not np.array_equal(part, full[rows]):
            raise ContractError(
                f"{what} answers {part} for rows {rows}, which are {full[rows]} among all rows: a"
                " row's answer may not depend on which rows are asked for (see Depends.PODS)"
            )


def _ask(
    what: str, compiled: Callable[[Rows], Any], rows: Rows, cluster: Cluster
) -> np.ndarray[Any, Any]:
    size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
    with read_only(cluster):
        first = _guarded(what, lambda: compiled(rows))
        _check_shape(what, first, size)
        first = first.copy()
        again = _guarded(what, lambda: compiled(rows))
    if not np.array_equal(first, again):
        raise ContractError(f"{what} answers {first} and then {again}: no chance, no clock")
    answer: np.ndarray[Any, Any] = first
    return answer


def _guarded(what: str, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except ValueError as error:
        if "read-only" in str(error):
            raise ContractError(
                f"{what} writes to the scheduler's columns: copy what you want to change"
            ) from error
        raise


def _check_shape(what: str, answer: object, size: int) -> None:
    shape = getattr(answer, "shape", type(answer).__name__)
    if not isinstance(answer, np.ndarray) or shape != (size,):
        raise ContractError(f"{what} answers {shape} for {size} rows: answer an array, one per row")
