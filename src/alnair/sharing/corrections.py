"""By what the driver's charge to a container differs from its ledger, learned slowly.

A context costs what it costs, kernels load late, a module has tables of its own: nothing of that
is an allocation that the library sees. The difference counts as used, so that the sum stays within
the limit. It rises only to what several samples in a row agree on, since a sample and a ledger are
never of the same instant, and it falls at once.

The other way round, modules are charged whole and before they are loaded, and a driver that loads
their kernels when they are first launched takes less. That much is credited, in the same way.
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
    """The overhead and the credit in force, and the last differences that were measured."""

    bytes: int = 0
    gaps: tuple[int, ...] = ()
    credit: int = 0


def learn(before: Overhead, *, measured: int, ledger: int, limit: int, loaded: int = 0) -> Overhead:
    """Return the overhead after one more sample.

    Args:
        before: After the last one.
        measured: Bytes that the driver charges to the container.
        ledger: Bytes that its processes say they hold.
        limit: Bytes; 0 is no limit, and there is nothing to correct.
        loaded: Bytes of the ledger that modules are charged with: no more is credited.
    """
    gaps = (*before.gaps, measured - ledger)[-AGREEING:]
    is_known, most = len(gaps) == AGREEING, int(limit * MOST)
    beyond = max(0, min(gaps)) if is_known else 0
    unused = max(0, -max(gaps)) if is_known else 0
    return Overhead(
        min(beyond, before.bytes + STEP, most),
        gaps,
        min(unused, loaded, before.credit + STEP, most),
    )
