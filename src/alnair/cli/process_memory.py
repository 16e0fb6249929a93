"""How much memory this process has needed."""

import resource
import sys


def peak_rss_mb() -> float:
    """Return the most memory that this process has had, in MB (10⁶ bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
