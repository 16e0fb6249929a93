r"""PyTorch's and Horovod's examples, and what has been made after them.

Epoch: [0][ 10/5005]\tTime  0.351 ( 1.250)\tData  0.001 ( 0.600)\tLoss 6.9 (7.0)\tAcc@1 0.1 (0.2)
Test: [ 10/196]\tTime  0.100 ( 0.200)\tLoss 1.0 (1.1)
Epoch [1][50/7330]  lr: 1.98e-03, eta: 1 day, 5:31:41, time: 1.209, data_time: 0.2, loss: 4.6
Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.303
Iter #3: 120.4 img/sec per GPU
"""

import re

from alnair.profiler.logs.numerals import NUMBER, number
from alnair.profiler.logs.reading import HOROVOD, PYTORCH, Reading

_METERS = re.compile(r"\bEpoch:?\s?\[(\d{1,9})\]\s{0,9}\[\s{0,9}(\d{1,12})\s?/\s?(\d{1,12})\]")
_TEST = re.compile(
    r"^(?:Test|Val|Eval)\w{0,8}:?\s?\[\s{0,9}\d{1,12}\s?/\s?\d{1,12}\]", re.IGNORECASE
)
_TIME = re.compile(
    rf"\b(?:batch_)?time:?\s{{1,9}}({NUMBER})(?:\s{{0,4}}\(\s{{0,4}}({NUMBER})\))?", re.IGNORECASE
)
_SAMPLES = re.compile(
    r"\bTrain Epoch:?\s?(\d{1,9})\s?\[\s{0,9}(\d{1,12})\s?/\s?(\d{1,12})\s{0,4}"
    r"\(\s{0,4}\d{1,3}%\)\]"
)
_ITER = re.compile(
    rf"\bIter\s#(\d{{1,9}}):\s?({NUMBER})\s(?:img|images|samples)/sec\sper\s\w{{2,10}}"
)


def read(text: str) -> Reading | None:
    """Return what a line in the manner of the examples says, None where it is none."""
    if _TEST.match(text):
        return Reading(is_training=False)
    if meters := _METERS.search(text):
        epoch = int(meters[1])
        return Reading(
            PYTORCH,
            step=int(meters[2]),
            steps=int(meters[3]),
            in_epoch=True,
            epoch=epoch,
            # torchvision's meters have a colon and count from 0, OpenMMLab's have none, and from 1.
            epoch_base=0 if "Epoch:" in meters[0] or epoch == 0 else 1,
            step_seconds=_step_seconds(text),
        )
    if samples := _SAMPLES.search(text):
        return Reading(
            PYTORCH,
            step=int(samples[2]),
            steps=int(samples[3]),
            in_epoch=True,
            of_samples=True,
            epoch=float(samples[1]),
            epoch_base=0 if samples[1] == "0" else 1,
        )
    if found := _ITER.search(text):
        return Reading(HOROVOD, step=int(found[1]), samples_per_s=number(found[2]))
    return None


def _step_seconds(text: str) -> float | None:
    """Return the time of one step: the mean in brackets, for the one before it is a single step."""
    found = _TIME.search(text)
    if found is None:
        return None
    each = number(found[2] or found[1])
    return each if each and each > 0 else None
