"""How long a test waits between two looks at a cluster."""

#: Seconds.
_LEAST, _MOST = 0.1, 0.4


def pause(waited: float) -> float:
    """Seconds to the next look: more after a long wait, as each look costs the API server some ms.

    Looks every 0.1 s were a tenth of all the CPU that tests of the scheduler took.
    """
    return min(_MOST, max(_LEAST, waited / 6))
