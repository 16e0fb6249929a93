"""Where the command begins: it imports nothing slow, so that an interrupt finds it ready."""

import gc
import os
import sys
from typing import Final

from alnair.cli.standard_streams import prepared

#: Objects after which the collector looks for cycles, until a process sets its own. What a command
#: imports is no garbage: at Python's 700 looking through it took a seventh of each start.
_GARBAGE: Final = 20_000


def main() -> None:
    """Runs the command; an interrupt ends it with a sentence, also while it is being loaded."""
    gc.set_threshold(_GARBAGE)
    use_one_thread_for_algebra()
    try:
        with prepared():
            from alnair.cli.main import main as run

            run()
    except KeyboardInterrupt:
        print("alnair: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        # At its end the interpreter looks for cycles in all that is left: 0.05 s.
        gc.freeze()


def use_one_thread_for_algebra() -> None:
    """Have NumPy's OpenBLAS start no threads, if the user has not said how many.

    When it is loaded it starts one for each core of the machine. Each spins for a while, 0.12 s of
    CPU in all on two cores, and keeps buffers; what we multiply is too small for any of them.
    """
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        # Not in os.environ: what a user's own program inherits is taken from there.
        os.putenv("OPENBLAS_NUM_THREADS", "1")
