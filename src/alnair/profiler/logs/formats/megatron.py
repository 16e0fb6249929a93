"""Megatron-LM and DeepSpeed.

 iteration      100/  500000 | consumed samples: 25600 | elapsed time per iteration (ms): 812.4 |
    learning rate: 1.5E-04 | global batch size: 256 | lm loss: 7.234151E+00 | (on one line)
steps: 100 loss: 8.8131 iter time (s): 2.934 samples/sec: 87.243
epoch=0/micro_step=100/global_step=100, RunningAvgSamplesPerSec=45.3, CurrSamplesPerSec=46.1
"""

import re

from alnair.profiler.logs.numerals import NUMBER, number
from alnair.profiler.logs.reading import DEEPSPEED, MEGATRON, Reading

_ITERATION = re.compile(r"\biteration\s{1,12}(\d{1,12})/\s{0,12}(\d{1,12})\s{0,4}\|")
_MILLISECONDS = re.compile(rf"elapsed time per iteration \(ms\):\s?({NUMBER})")
_LOSS = re.compile(rf"\blm loss:\s?({NUMBER})", re.IGNORECASE)
_STEPS = re.compile(
    rf"\bsteps:\s?(\d{{1,12}})\sloss:\s?({NUMBER})\siter time \(s\):\s?({NUMBER})\s"
    rf"samples/sec:\s?({NUMBER})",
    re.IGNORECASE,
)
_TIMER = re.compile(
    r"\bepoch=(\d{1,9})/micro_step=\d{1,12}/global_step=(\d{1,12}),\s?"
    rf"RunningAvgSamplesPerSec=({NUMBER})"
)


def read(text: str) -> Reading | None:
    """Return what Megatron or DeepSpeed says, None where this is neither."""
    if iteration := _ITERATION.search(text):
        each, loss = _MILLISECONDS.search(text), _LOSS.search(text)
        return Reading(
            MEGATRON,
            step=int(iteration[1]),
            steps=int(iteration[2]),
            step_seconds=_positive(each[1], 1e-3) if each else None,
            loss=number(loss[1]) if loss else None,
        )
    if steps := _STEPS.search(text):
        return Reading(
            DEEPSPEED,
            step=int(steps[1]),
            loss=number(steps[2]),
            step_seconds=_positive(steps[3], 1.0),
            samples_per_s=number(steps[4]),
        )
    if timer := _TIMER.search(text):
        return Reading(
            DEEPSPEED,
            step=int(timer[2]),
            epoch=float(timer[1]),
            epoch_base=0,
            samples_per_s=number(timer[3]),
        )
    return None


def _positive(text: str, factor: float) -> float | None:
    value = (number(text) or 0.0) * factor
    return value if value > 0 else None
