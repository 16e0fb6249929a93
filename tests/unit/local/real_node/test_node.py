"""What is told of a node that goes."""

from pathlib import Path

from alnair.local.layout import Layout
from alnair.local.real_node.node import forget
from alnair.local.report import NoReport


class Steps(NoReport):
    def __init__(self) -> None:
        self.told: list[str] = []

    def step(self, text: str) -> None:
        self.told.append(text)


async def test_that_images_are_deleted_is_told_once(tmp_path: Path) -> None:
    layout, steps = Layout(tmp_path, "one"), Steps()
    (layout.folder / "node" / "containerd").mkdir(parents=True)
    for _ in range(2):
        await forget(layout, steps)
    assert steps.told == ["deleting the images and containers of the real node"]
    assert [*layout.folder.iterdir()] == []
