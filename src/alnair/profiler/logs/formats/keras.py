r"""Keras, and the log hooks of TensorFlow's estimators.

Epoch 3/10
 12/469 [>.............................] - ETA: 1:23 - loss: 2.2871 - accuracy: 0.1172
469/469 [==============================] - 2s 4ms/step - loss: 0.2974 - accuracy: 0.9144
12/469 ━━━━━━━━━━━━━━━━━━━━ 5s 12ms/step - accuracy: 0.1172 - loss: 2.2871
INFO:tensorflow:loss = 0.51, step = 1200 (1.204 sec)
INFO:tensorflow:global_step/sec: 83.06
10\timages/sec: 120.4 +/- 0.0 (jitter = 0.0)\t7.972
"""

import re

from alnair.profiler.logs.numerals import CLOCK, NUMBER, integer, number, seconds
from alnair.profiler.logs.reading import KERAS, TENSORFLOW, Reading

_EPOCH = re.compile(r"epoch\s(\d{1,9})/(\d{1,9})\s{0,9}$", re.IGNORECASE)
_BAR = re.compile(
    r"(\d{1,12})/(\d{1,12}|Unknown)\s{1,9}(?:\[[=>.]{3,300}\]|[━╸╺]{3,300})(?!.{0,60}•)"
)
#: Keras 2 tells what is left while it runs; Keras 3 tells it without a word for it.
_LEFT = re.compile(rf"ETA:\s?(?:({CLOCK})|(\d{{1,9}})s)")
_EACH = re.compile(rf"(?<![\d.,])({NUMBER})(us|µs|ms|s)/(?:step|sample|epoch)")
_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_HOOK = re.compile(
    rf"\bloss\s?=\s?({NUMBER}),\s?step\s?=\s?(\d{{1,15}})(?:\s\(({NUMBER})\ssec\))?", re.IGNORECASE
)
_STEPS_PER_S = re.compile(rf"\bglobal_step/sec:\s?({NUMBER})")
_CNN = re.compile(
    rf"(\d{{1,12}})\s{{1,9}}images/sec:\s?({NUMBER})\s\+/-\s(?:{NUMBER})\s\(jitter = "
    rf"(?:{NUMBER})\)\s{{1,9}}({NUMBER})"
)


def read(text: str) -> Reading | None:
    """Return what Keras or TensorFlow says, None where this is neither."""
    if epoch := _EPOCH.fullmatch(text):
        # So do others; the bar that follows names the framework.
        return Reading(epoch=number(epoch[1]), epochs=number(epoch[2]), epoch_base=1)
    if bar := _BAR.match(text):
        return _bar(text, bar)
    if hook := _HOOK.search(text):
        step, loss = integer(hook[2]), number(hook[1])
        return Reading(TENSORFLOW, step=step, loss=loss)
    if rate := _STEPS_PER_S.search(text):
        each = number(rate[1])
        return Reading(TENSORFLOW, step_seconds=1 / each if each and each > 0 else None)
    if cnn := _CNN.match(text):
        return Reading(
            TENSORFLOW, step=integer(cnn[1]), samples_per_s=number(cnn[2]), loss=number(cnn[3])
        )
    return None


def _bar(text: str, bar: re.Match[str]) -> Reading:
    step = int(bar[1])
    steps = int(bar[2]) if bar[2].isdigit() else None
    each = None
    if found := _EACH.search(text):
        each = float(found[1].replace(",", "")) * _UNITS[found[2]]
    elif steps is not None and step < steps and (left := _LEFT.search(text)):
        each = (seconds(left[1]) if left[1] else float(left[2])) / (steps - step)
    return Reading(KERAS, step=step, steps=steps, in_epoch=True, step_seconds=each or None)
