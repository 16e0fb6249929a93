"""Ten thousand admissions on a model node: each container on its GPUs, none over-committed.

What happens at random: pods of all kinds, by our scheduler and by one that gives no GPUs; rejected
pods whose ids come free; watches that are late; restarts of the kubelet and of the plugin at any
moment; deletions, by force too. `kit.model_node` says how each of it behaves.
"""

import pytest

from kit.model_node.node import Node

WRONG = (
    "on another GPU than assigned",
    "with other limits than its spec",
    "over-committed",
    "taken for another pod",
    "far from its cores",
    "chosen in vain",
    "waiting for ever",
)


@pytest.mark.parametrize(
    ("seed", "admissions", "foreign", "mistakes", "aligned"),
    [
        (1, 5_500, 0.0, False, False),
        (2, 5_000, 0.3, True, False),
        (3, 1_300, 1.0, False, False),
        (4, 1_300, 0.3, True, True),
    ],
)
def test_each_container_starts_on_its_gpus_and_nobody_waits_for_ever(
    seed: int, admissions: int, foreign: float, mistakes: bool, aligned: bool
) -> None:
    node = Node(seed, foreign=foreign, mistakes=mistakes, aligned=aligned)
    counts = node.run(admissions)
    print(f"seed {seed}:", ", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    assert not node.judge.wrong[:5]
    assert not {name: counts[name] for name in WRONG if counts[name]}
    # A run in which these do not happen would prove little.
    for name in ("containers started", "told to wait", "kubelet restarts", "plugin restarts"):
        assert counts[name] > admissions / 400, name
    # Where a scheduler books all and makes no mistake, nobody is evicted for being late.
    assert bool(counts["refused and evicted"]) == bool(foreign)
