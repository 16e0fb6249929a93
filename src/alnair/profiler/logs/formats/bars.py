"""Progress bars of tqdm and of Lightning's rich bar; what they are of, their label says.

Epoch 3:  12%|█▏        | 57/469 [00:05<00:36, 11.3it/s, v_num=0, loss=0.512]
 12%|█▏        | 120/1000 [01:00<07:20,  2.00it/s]
Epoch 0/9 ━━━━━╸━━━━ 57/469 0:00:05 • 0:00:36 11.30it/s v_num: 0.000 loss: 0.512
"""

import re

from alnair.profiler.logs.numerals import CLOCK, NUMBER, SCALED, number, scaled
from alnair.profiler.logs.reading import LIGHTNING, Reading

_BAR = re.compile(
    rf"(?<!\d)\d{{1,3}}%\|[^|]{{0,300}}\|\s{{0,9}}({SCALED})/({SCALED})\s{{0,9}}"
    rf"\[(?:{CLOCK})<(?:{CLOCK}|\?),\s{{0,9}}(?:({NUMBER})|\?)\s?(\w{{1,16}})/(\w{{1,16}})",
    re.IGNORECASE,
)
_RICH = re.compile(
    rf"(?<![━╸╺])[━╸╺]{{2,300}}\s{{1,9}}(\d{{1,15}})/(\d{{1,15}})\s{{1,9}}(?:{CLOCK})\s{{1,9}}•\s{{1,9}}"
    rf"(?:{CLOCK}|-:--:--)\s{{1,9}}({NUMBER})(it)/(s)",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"\bepochs?\s{0,4}:?\s{0,4}\[?(\d{1,9})(?:\s?/\s?(\d{1,9}))?", re.IGNORECASE)
#: A bar with such a label, or with none, may be the training's.
_TRAINS = re.compile(
    r"\b(?:epochs?|train\w{0,8}|steps?|iter\w{0,8}|batch\w{0,4}|fit\w{0,4})\b", re.IGNORECASE
)
_DOES_NOT = re.compile(
    r"\b(?:val(?:id\w{0,8})?|eval\w{0,8}|test\w{0,4}|predict\w{0,4}|sanity|download\w{0,4}|"
    r"load\w{0,4}|map|token\w{0,8}|generat\w{0,8}|sav\w{0,4}|filter)\b",
    re.IGNORECASE,
)


def read(text: str) -> Reading | None:
    """Return what a bar says, None where there is none."""
    # A bar of the terminal is drawn after what stood there: the last one of the line is true.
    found = None
    for found in _BAR.finditer(text):  # noqa: B007
        pass
    found = found or _RICH.search(text)
    if found is None:
        return None
    done, total, rate, unit, per = found.groups()
    label = text[: found.start()]
    epoch = _EPOCH.search(label)
    is_lightning = "v_num" in text
    is_rich = "━" in found[0]
    base = None
    if epoch is not None:
        base = 0 if is_lightning or epoch[1] == "0" else 1 if epoch[2] else None
    epochs = number(epoch[2]) if epoch and epoch[2] else None
    if epochs is not None and is_rich:
        epochs += 1  # it counts from 0 and names the last one
    return Reading(
        framework=LIGHTNING if is_lightning else "",
        step=scaled(done),
        steps=scaled(total),
        in_epoch=epoch is not None,
        is_bar=True,
        is_training=_is_training(label, has_label=bool(label.strip(" :"))),
        epoch=number(epoch[1]) if epoch else None,
        epoch_base=base,
        epochs=epochs,
        step_seconds=_seconds(number(rate), unit, per),
    )


def _seconds(rate: float | None, unit: str, per: str) -> float | None:
    """Return the seconds of a step, from steps per second or seconds per step."""
    if not rate:
        return None
    if per == "s":
        return 1 / rate
    return rate if unit == "s" else None


def _is_training(label: str, *, has_label: bool) -> bool:
    if not has_label:
        return True
    return _TRAINS.search(label) is not None and _DOES_NOT.search(label) is None
