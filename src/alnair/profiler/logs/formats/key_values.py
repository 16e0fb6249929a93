"""Names beside numbers, as most programs print them; they complete what the other formats read.

step=100 loss=0.52 | Epoch [2/10], Step [50/600], Loss: 0.41 | iter 100: loss 3.2, time 123.4ms
{"step": 100, "loss": 0.52} | Step: 1,200 of 10,000 | throughput: 512.3 samples/s
"""

import re

from alnair.profiler.logs.numerals import INTEGER, NUMBER, integer, number
from alnair.profiler.logs.reading import Reading

_IS = r"[\"']?\s{0,4}[:=#]?\s{0,4}[\[(]?\s{0,6}"
_OF = rf"(?:\s{{0,6}}(?:/|of)\s{{0,6}}({INTEGER}))?"
#: Not the end of another name, such as of val_loss or train/loss_scale.
_ALONE = r"(?<![\w/.-])"
_TRAIN = r"(?:train(?:ing)?[_/ ])?"
_STEP = re.compile(
    rf"{_ALONE}(?<!accumulation ){_TRAIN}"
    rf"(?:global[_ ]?step|num_updates|steps?|iterations?|iters?|batch){_IS}"
    rf"({INTEGER})(?![\d.]){_OF}",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    rf"{_ALONE}(?:max|total|num)[_ ](?:train(?:ing)?[_ ])?(?:steps|iters|iterations){_IS}"
    rf"({INTEGER})(?![\d.])",
    re.IGNORECASE,
)
#: "Test set: Average loss: 0.05", "Validation: loss 0.4", "val_loss: 0.4".
_OF_OTHERS = re.compile(
    r"\W{0,9}(?:test|val(?:id(?:ation)?)?|eval(?:uation)?|dev)\b", re.IGNORECASE
)
_EPOCH = re.compile(rf"{_ALONE}epoch{_IS}(\d{{1,9}}(?:\.\d{{1,9}})?)(?![\d.]){_OF}", re.IGNORECASE)
_NOT_TRAINING = r"(?<!val )(?<!valid )(?<!validation )(?<!eval )(?<!test )(?<!dev )"
_LOSS = re.compile(
    rf"{_ALONE}{_NOT_TRAINING}{_TRAIN}(?:lm[_ ])?loss(?:[ _/](?:train|step))?{_IS}({NUMBER})",
    re.IGNORECASE,
)
_ACCURACY = re.compile(
    rf"{_ALONE}{_NOT_TRAINING}{_TRAIN}(?:acc(?:uracy)?(?:@1)?|top1|sparse_categorical_accuracy)"
    rf"(?![\w@]){_IS}({NUMBER})",
    re.IGNORECASE,
)
_PER_S = re.compile(
    rf"(?<![\d.,])({NUMBER})\s?(it|iters?|iterations?|steps?|batch(?:es)?|samples?|img|imgs|images?|"
    r"examples?|tokens?|tok|sequences?)\s?(?:/|per\s)\s?s(?:ec(?:ond)?)?\b",
    re.IGNORECASE,
)
_EACH = re.compile(
    rf"(?<![\d.,])({NUMBER})\s?(us|µs|ms|s|sec|seconds)\s?/\s?(?:it|iter|iteration|step|batch)\b",
    re.IGNORECASE,
)
_TOOK = re.compile(
    rf"{_ALONE}(?:step_|iter_|batch_)?time{_IS}({NUMBER})\s?(us|ms|s)\b", re.IGNORECASE
)
_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3}
_STEPS = ("it", "step", "batch")


def read(text: str) -> Reading | None:
    """Return the numbers that have known names, None where there are none."""
    if _OF_OTHERS.match(text):
        return Reading(is_training=False)
    step, epoch, total = _STEP.search(text), _EPOCH.search(text), _TOTAL.search(text)
    loss, accuracy = _LOSS.search(text), _ACCURACY.search(text)
    each, samples = _rate(text)
    if not (step or epoch or total or loss or accuracy or each or samples):
        return None
    epochs = number(epoch[2]) if epoch else None
    base = None
    if epoch is not None:
        base = 0 if float(epoch[1]) == 0 else 1 if epochs else None
    return Reading(
        step=integer(step[1]) if step else None,
        steps=integer((step and step[2]) or (total and total[1]) or None),
        # "Epoch [2/10], Step [50/600]": steps of the epoch.
        in_epoch=bool(step and step[2] and epoch and epochs),
        epoch=number(epoch[1]) if epoch else None,
        epoch_base=base,
        epochs=epochs,
        loss=number(loss[1]) if loss else None,
        accuracy=number(accuracy[1]) if accuracy else None,
        step_seconds=each,
        samples_per_s=samples,
    )


def _rate(text: str) -> tuple[float | None, float | None]:
    """Return the seconds of a step, and samples per second."""
    each = samples = None
    if found := _PER_S.search(text):
        value = number(found[1]) or 0.0
        if not value > 0:
            pass
        elif found[2].lower().startswith(_STEPS):
            each = 1 / value
        else:
            samples = value
    if found := _EACH.search(text) or _TOOK.search(text):
        value = (number(found[1]) or 0.0) * _UNITS.get(found[2].lower(), 1.0)
        each = value if value > 0 else each
    return each, samples
