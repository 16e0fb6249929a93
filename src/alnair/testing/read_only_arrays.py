"""Arrays that nobody may write to for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from alnair.scheduler.state.cluster import Cluster


@contextmanager
def read_only(cluster: Cluster) -> Iterator[None]:
    """Make NumPy refuse writes to what plugins read, with a ValueError at the line that tries."""
    closed = [array for array in _arrays(cluster) if array.flags.writeable]
    for array in closed:
        array.flags.writeable = False
    try:
        yield
    finally:
        for array in closed:
            array.flags.writeable = True


def _arrays(cluster: Cluster) -> Iterator[NDArray[np.generic]]:
    parts = [getattr(cluster, field) for field in cluster.__struct_fields__]
    for part in [*parts, cluster.columns.labels]:
        for value in vars(part).values():
            if isinstance(value, np.ndarray):
                yield value
            elif isinstance(value, dict):
                yield from (v for v in value.values() if isinstance(v, np.ndarray))
