"""What each score of a class counts, so that some only decide where others find nodes alike."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from alnair.scheduler.state.nodes.columns import TIES

#: Scores of plugins that say `fine` are multiples of this part of a point. A power of two, so that
#: sums are exact.
PARTS: Final = 1024


class Scorer(Protocol):
    """A plugin that scores, and may say how its score stands to others."""

    name: str


def weigh(
    plugins: Sequence[Scorer], weights: Mapping[str, int], silent: Collection[str] = ()
) -> tuple[tuple[float, ...], float]:
    """Return what each plugin's score is multiplied by (0: it has no say), and what their sum is.

    The sum is multiplied such that the least difference of two scores is `TIES` or more, which
    leaves room for the tie-break. A double holds that exactly as long as the weighted scores add up
    to less than 2^33 of their least parts; beyond, only nodes alike may be taken in another order.

    Args:
        plugins: those that score the class.
        weights: of the profile, by name of the plugin; 1 if absent.
        silent: names of plugins that have no say.
    """
    behind = {name for plugin in plugins for name in getattr(plugin, "tie_breakers", ())}
    parts, most, parts_behind = 1, 0, 1
    for plugin in plugins:
        fine = PARTS if getattr(plugin, "fine", False) else 1
        if plugin.name in silent:
            continue
        if plugin.name in behind:
            parts_behind = max(parts_behind, fine)
            most += weights.get(plugin.name, 1) * getattr(plugin, "most", 100)
        else:
            parts = max(parts, fine)
    # Powers of two, for sums that are exact. More than all tie-breakers together.
    room = parts * (1 << most.bit_length()) if most else 1.0
    shares = tuple(
        0.0
        if plugin.name in silent
        else weights.get(plugin.name, 1) / (room if plugin.name in behind else 1)
        for plugin in plugins
    )
    return shares, float(TIES * max(room * parts_behind, parts))
