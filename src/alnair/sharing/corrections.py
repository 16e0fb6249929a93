"""What the driver charges to a container beyond the ledger of its processes, learned slowly.

A context costs what it costs, kernels load late, a module has tables of its own: nothing of that
is an allocation that the library sees. The difference counts as used, so that the sum stays within
the limit. It rises only to what several samples in a row agree on, since a sample and a ledger are
never of the same instant, and it falls at once.
"""

from typing import Final

import msgspec

_MIB: Final = 1 << 20
#: Samples that must agree before the overhead rises.
AGREEING: Final = 3
#: Bytes by which it rises at most in one step, so that no single figure takes a limit away.
STEP: Final = 256 * _MIB
#: It takes at most this part of a limit.
MOST: Final = 0.5


class Overhead(msgspec.Struct, frozen=True):
    """The overhead in force, and the last differences that were measured."""

    bytes: int = 0
    gaps: tuple[int, ...] = ()


def learn(before: Overhead, *, measured: int, ledger: int, limit: int) -> Overhead:
    """Return the overhead after one more sample.

    Args:
        before: After the last one.
        measured: Bytes that the driver charges to the container.
        ledger: Bytes that its processes say they hold.
        limit: Bytes; 0 is no limit, and there is nothing to correct.
    """
    gaps = (*before.gaps, max(0, measured - ledger))[-AGREEING:]
    agreed = min(gaps) if len(gaps) == AGREEING else 0
    most = int(limit * MOST)
    return Overhead(min(agreed, before.bytes + STEP, most), gaps)
