"""Bring raw scores to 0-100, as kube-scheduler's default normalisation does."""

import numpy as np

from alnair.scheduler.state.nodes.columns import Column, Mask


def more_is_better(raw: Column, feasible: Mask) -> Column:
    """Return 100 for the most of a feasible row down to 0 for nothing, in integers."""
    most = raw[feasible].max(initial=0.0)
    return np.floor(raw * 100.0 / most) if most else raw


def fewer_is_better(raw: Column, feasible: Mask) -> Column:
    """Return 100 for nothing down to 0 for the most of a feasible row, in integers."""
    most = raw[feasible].max(initial=0.0)
    return 100.0 - np.floor(raw * 100.0 / most) if most else np.full_like(raw, 100.0)
