"""Hugging Face's Trainer: dictionaries between bars, and what it says before it begins.

{'loss': 0.4512, 'grad_norm': 1.2, 'learning_rate': 4.2e-05, 'epoch': 1.25}
{'eval_loss': 0.41, 'eval_runtime': 3.1, 'eval_accuracy': 0.86, 'epoch': 2.0}
  Num Epochs = 3
  Total optimization steps = 1,000
"""

import re

from alnair.profiler.logs.numerals import INTEGER, NUMBER, integer, number
from alnair.profiler.logs.reading import HUGGING_FACE, Reading

_LEARNING = re.compile(r"\{.{0,1500}?'(?:learning_rate|train_runtime|eval_runtime)'")
_VALUE = r"['\"]{key}['\"]:\s?['\"]?({number})"
_EPOCH = re.compile(_VALUE.format(key="epoch", number=NUMBER))
_LOSS = re.compile(_VALUE.format(key="loss", number=NUMBER), re.IGNORECASE)
_EPOCHS = re.compile(rf"\bNum Epochs = ({INTEGER})\b")
_STEPS = re.compile(rf"\bTotal optimization steps = ({INTEGER})\b")


def read(text: str) -> Reading | None:
    """Return what the Trainer says, None where this is not its line."""
    if _LEARNING.search(text):
        epoch, loss = _EPOCH.search(text), _LOSS.search(text)
        return Reading(
            HUGGING_FACE,
            epoch=number(epoch[1]) if epoch else None,
            epoch_base=0,
            loss=number(loss[1]) if loss else None,
        )
    if epochs := _EPOCHS.search(text):
        return Reading(HUGGING_FACE, epochs=number(epochs[1]))
    if steps := _STEPS.search(text):
        return Reading(HUGGING_FACE, steps=integer(steps[1]))
    return None
