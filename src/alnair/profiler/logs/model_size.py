"""What a log says of a model's size, as frameworks print it before they begin.

124,439,808 of nanoGPT ("number of parameters: 123.65M"), Keras ("Total params: 1,199,882 (4.58
MB)"), Lightning ("124 M     Total params", "497.759   Total estimated model params size (MB)"), the
Trainer ("Number of trainable parameters = 109,483,778"), PEFT ("trainable params: 294,912 || all
params: 124,734,720"), torchinfo, torchtitan, vLLM ("Model loading took 14.99 GiB").
"""

import re
from typing import Final

import msgspec

_COUNT: Final = r"(\d{1,3}(?:,\d{3}){1,5}|\d{1,18}(?:\.\d{1,6})?)\s?([kmbt](?!\w)|)"
_SIZE: Final = r"(\d{1,9}(?:\.\d{1,6})?)"
#: All parameters, the surest first; then those that are trained, which are some of them. In small
#: letters; each begins with words or at the line's begin, so that no line makes it slow.
_ALL: Final = (
    re.compile(rf"all params: {_COUNT}"),
    re.compile(rf"total param(?:eter)?s\s?[:=]\s?{_COUNT}"),
    re.compile(rf"(?:^|size: ){_COUNT}\s{{1,10}}total param(?:eter)?s\b"),
    re.compile(rf"(?:number of|num|n)[ _](?:model )?param(?:eter)?s\s?[:=]\s?{_COUNT}"),
)
_TRAINED: Final = (
    re.compile(rf"trainable param(?:eter)?s\s?[:=]\s?{_COUNT}"),
    re.compile(rf"^{_COUNT}\s{{1,10}}trainable params\b"),
)
_WEIGHTS: Final = (
    (re.compile(rf"^{_SIZE}\s{{1,10}}total estimated model params size \(mb\)"), 1e6 / 2**20),
    (re.compile(rf"params size \(mb\): {_SIZE}"), 1e6 / 2**20),
    (re.compile(rf"model (?:loading|weights) (?:took|take) {_SIZE} ?gib"), 1024.0),
    (re.compile(rf"loading model weights took {_SIZE} ?gb"), 1024.0),
)
_SCALES: Final = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_MOST: Final = 1e15


class ModelSize(msgspec.Struct, frozen=True):
    """What was said so far.

    Attributes:
        parameters: All of them.
        trained: Those that are trained.
        weights_mib: Size of the weights.
    """

    parameters: float | None = None
    trained: float | None = None
    weights_mib: float | None = None


def read(text: str, known: ModelSize) -> ModelSize:
    """Return what is known after a clean line; the largest counts, for parts of a model come too.

    Args:
        text: The line.
        known: What was known before.
    """
    low = text.lower()
    if "param" not in low and "model" not in low:
        return known  # nearly all lines
    if "rank (" in low or "non-trainable" in low:
        return known  # of a part of the model only
    # PEFT says both in one line.
    parameters = _counted(_ALL, low)
    trained = _counted(_TRAINED, low)
    weights = None
    for pattern, scale in _WEIGHTS:
        if found := pattern.search(low):
            weights = float(found[1]) * scale
    if parameters is None and trained is None and weights is None:
        return known
    return ModelSize(
        _larger(known.parameters, parameters),
        _larger(known.trained, trained),
        _larger(known.weights_mib, weights),
    )


def _counted(patterns: tuple[re.Pattern[str], ...], text: str) -> float | None:
    for pattern in patterns:
        if found := pattern.search(text):
            return float(found[1].replace(",", "")) * _SCALES[found[2]]
    return None


def _larger(one: float | None, other: float | None) -> float | None:
    if other is None or not 0 < other < _MOST:
        return one
    return other if one is None else max(one, other)
