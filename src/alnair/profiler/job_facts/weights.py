"""How large a model's weights can be, from the GPU memory that a pod holds.

While a model is used its weights are in memory all the time, beside a context of CUDA and what the
framework keeps. So the least that is held for a while bounds the weights from above.
"""

from typing import Final

import numpy as np

from alnair.profiler.even_grid import Values

#: Seconds for which memory is held, and by which part it may waver.
_HELD: Final = 20.0
_WAVERS: Final = 0.02
#: MiB below which what is held is a context and no model.
LEAST: Final = 768.0
#: MiB of a context, as the library in containers reckons while nobody has measured it.
CONTEXT: Final = 512.0


def held_mib(times: Values, memory: Values) -> float | None:
    """Return the least GPU memory that was held for a while, without a context, in MiB.

    Args:
        times: Seconds of each sample, rising.
        memory: MiB of the pod's GPUs; NaN where it was not measured.
    """
    known = ~np.isnan(memory)
    times, memory = times[known], memory[known]
    levels = []
    begin = 0
    while begin < len(memory):
        end = begin
        low = high = memory[begin]
        while end + 1 < len(memory):
            lower, upper = min(low, memory[end + 1]), max(high, memory[end + 1])
            if upper - lower > _WAVERS * upper:
                break
            low, high, end = lower, upper, end + 1
        if times[end] - times[begin] >= _HELD and low >= LEAST:
            levels.append(float(low))
        begin = end + 1
    return min(levels) - CONTEXT if levels else None
