"""What one line of a log says."""

from typing import Final

import msgspec

#: Names of what wrote a log; "" is not known.
PYTORCH: Final = "pytorch"
LIGHTNING: Final = "lightning"
HUGGING_FACE: Final = "hugging-face"
KERAS: Final = "keras"
TENSORFLOW: Final = "tensorflow"
HOROVOD: Final = "horovod"
MEGATRON: Final = "megatron"
DEEPSPEED: Final = "deepspeed"
FASTAI: Final = "fastai"
FRAMEWORKS: Final = (
    PYTORCH,
    LIGHTNING,
    HUGGING_FACE,
    KERAS,
    TENSORFLOW,
    HOROVOD,
    MEGATRON,
    DEEPSPEED,
    FASTAI,
)


class Reading(msgspec.Struct, frozen=True):
    """The numbers of a line. What it does not say is None.

    Attributes:
        framework: One of `FRAMEWORKS`, or empty.
        step: Steps done, as printed.
        steps: How many there will be.
        in_epoch: Whether `step` begins anew in each epoch.
        of_samples: Whether `step` counts samples and not steps.
        is_bar: Whether it is of a progress bar, of which there may be several for many things.
        is_training: False for evaluation, downloads and the like: their steps are no progress.
        epoch: As printed; of some frameworks a fraction.
        epoch_base: What the first epoch is called, 0 or 1; None where that is not known.
        epochs: How many there will be.
        loss: Of the training; NaN or infinite as printed.
        accuracy: As printed: a part of 1, or percent.
        step_seconds: Seconds for one step.
        samples_per_s: Samples (images, tokens) each second.
        at: The line's own time, seconds since the epoch, or of some day where it has only a time.
    """

    framework: str = ""
    step: int | None = None
    steps: int | None = None
    in_epoch: bool = False
    of_samples: bool = False
    is_bar: bool = False
    is_training: bool = True
    epoch: float | None = None
    epoch_base: int | None = None
    epochs: float | None = None
    loss: float | None = None
    accuracy: float | None = None
    step_seconds: float | None = None
    samples_per_s: float | None = None
    at: float | None = None
