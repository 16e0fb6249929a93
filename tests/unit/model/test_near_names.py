"""A mistyped name finds the one that was meant."""

import pytest

from alnair.model.near_names import near

LABELS = ("kubernetes.io/hostname", "nvidia.com/gpu.product", "topology.kubernetes.io/zone")


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("alnair-schedular", ("alnair-scheduler", "volcano"), ("alnair-scheduler",)),
        ("ZONE", LABELS, ("topology.kubernetes.io/zone",)),
        ("gpu-product", LABELS, ("nvidia.com/gpu.product",)),
        ("trainer", ("trainer-7c9f-x2k", "other-1"), ("trainer-7c9f-x2k",)),
        ("a100", ("A100", "T4"), ("A100",)),
        ("volcano", ("alnair-scheduler", "default-scheduler"), ()),
        ("same", ("same",), ()),
        ("", ("a", "b"), ()),
    ],
)
def test_what_is_near_is_found_and_nothing_else(
    word: str, known: tuple[str, ...], found: tuple[str, ...]
) -> None:
    assert near(word, known) == found


def test_the_nearest_comes_first_then_the_order_of_names_decides() -> None:
    assert near("node-1", ("node-12", "node-2", "node-3", "node-11")) == (
        "node-11",
        "node-12",
        "node-2",
    )


def test_of_thousands_the_one_that_was_meant_is_found() -> None:
    known = [f"pool-{i % 7}-node-{i:05d}.example" for i in range(5000)]
    assert near("pool-3-nod-01242.example", known)[0] == "pool-3-node-01242.example"
    assert near("pool-3-node-01242.exmaple", known)[0] == "pool-3-node-01242.example"
