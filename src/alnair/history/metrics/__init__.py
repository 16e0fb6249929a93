"""Metrics of scheduling: what a history, simulated or live, says about how well it was scheduled.

Pure functions of `alnair.history.history.History`. `compute` gives all of them at once;
docs/reference/metrics-of-scheduling.md defines each, with its source.
"""

from alnair.history.metrics.all_metrics import TAU, compute
from alnair.history.metrics.result import Metrics

__all__ = ["TAU", "Metrics", "compute"]
