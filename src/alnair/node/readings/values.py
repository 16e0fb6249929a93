"""What is read of a GPU, as values."""

import msgspec

from alnair.profiler.samples import GpuSample


class NvmlError(Exception):
    """There is no NVML, or it does not answer; says why and what to do."""


class Load(msgspec.Struct, frozen=True):
    """What the driver says of a GPU's processes at one moment.

    Attributes:
        memory: Host pid → bytes charged to it; None if the driver does not say.
        shares: Host pid → part of the GPU's time since the last look, as the driver says, so that
            they may add up to more than 1; empty if not measured.
        mps: Host pids of those that are clients of an MPS server.
    """

    memory: dict[int, int | None]
    shares: dict[int, float]
    mps: frozenset[int] = frozenset()


class Usage(msgspec.Struct, frozen=True):
    """What a GPU does as a whole.

    Attributes:
        util: Percent of the time in which kernels ran; None where that is not measured, as in MIG
            mode.
        memory_bytes: In use, with the driver's own part.
        mig: Bytes in use of the GPU's MIG devices, by their UUIDs; of those of one GPU instance
            together.
        is_mean: Whether `util` is over all the time since the last look; else it is the driver's
            last sample, of which nothing follows for that time.
    """

    util: float | None
    memory_bytes: int
    mig: dict[str, int] = {}
    is_mean: bool = True


class Reading(msgspec.Struct, frozen=True):
    """All that was read of a GPU at once.

    Attributes:
        sample: For the profiler.
        load: For who looks after the processes.
        usage: For who looks after the GPU.
        unmapped: Processes with a use that the driver does not list on it.
    """

    sample: GpuSample
    load: Load
    usage: Usage
    unmapped: int = 0
