"""What rebalancing tells at /metrics: as documented."""

import re
from pathlib import Path

from alnair.model.rebalancing import PlannedMove, RebalancePlan
from alnair.processes.controller.rebalancing.figures import RebalanceFigures
from alnair.serving.exposition import text_of
from kit.described_metrics import described

PAGE = Path(__file__).parents[5] / "docs" / "reference" / "metrics-of-the-controller.md"


def page(under_way: int | None) -> str:
    """What is told after things have happened."""
    figures = RebalanceFigures()
    move = PlannedMove(
        namespace="n", name="p", uid="p", kind="k", source="a", target="b", stage="done"
    )
    plan = RebalancePlan(
        unit="u", name="u", pod=("n", "p", "p"), gpus=8, at=1.0, nodes=("a",), moves=(move,)
    )
    figures.moved(move)
    figures.ended(plan)
    figures.rounds["plan"] += 1
    figures.seconds.observe(0.2)
    figures.last = 5.0
    return text_of(figures.metrics(under_way))


def test_the_page_says_what_was_moved_and_for_how_much() -> None:
    text = page(2)
    for sample in (
        'alnair_rebalancing_moves_total{by="eviction",result="done"} 1.0',
        'alnair_rebalancing_gpus_total{result="freed"} 8.0',
        'alnair_rebalancing_rounds_total{result="plan"} 1.0',
        "alnair_rebalancing_moves_under_way 2.0",
        "alnair_rebalancing_last_round_timestamp_seconds 5.0",
    ):
        assert sample in text
    assert "under_way" not in page(None), "who does not lead tells only what it counted"


def test_every_metric_is_documented_with_its_type_and_labels_and_no_other() -> None:
    row = re.compile(r"^\| `(alnair_rebalancing\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)
    documented = {
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in row.findall(PAGE.read_text())
    }
    told = set()
    for line in described(page(2)):
        name, kind, labels, _ = line.split("\t")
        told.add((name, kind, tuple(one for one in labels.split(",") if one and one != "le")))
    assert told == documented
