"""Numbers of things in sentences: 1 pod, 2 pods."""


def counted(number: int, thing: str, things: str = "") -> str:
    """Return a number with its noun: `1 pod`, `2 pods`, `0 pods`.

    Args:
        number: How many there are.
        thing: One of them.
        things: Several of them, where an `s` does not make it so.
    """
    return f"{number} {thing if number == 1 else things or plural(thing)}"


def plural(thing: str) -> str:
    """Return the plural of a noun: pods, policies, classes."""
    if thing.endswith("y") and thing[-2:-1] not in "aeiou":
        return f"{thing[:-1]}ies"
    return f"{thing}es" if thing.endswith(("s", "x", "ch", "sh")) else f"{thing}s"
