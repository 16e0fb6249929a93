"""How many cases random tests try: few here, and `ALNAIR_SOAK=10` times as many by hand."""

import os

TIMES = int(os.environ.get("ALNAIR_SOAK", "1"))


def cases(count: int) -> range:
    """Numbers of so many cases: seeds, for example."""
    return range(count * TIMES)
