"""What the checker finds: one broken promise."""

import msgspec


class Violation(msgspec.Struct, frozen=True, omit_defaults=False):
    """A rule that does not hold.

    Attributes:
        rule: Its name in the registry.
        object: What is at fault: `pod NAMESPACE/NAME`, `podgroup NAMESPACE/NAME`, or the resource
            of a node that is over-committed.
        node: The node, empty if there is none.
        gpu: UUID of the GPU, empty if there is none.
        used: What was found.
        limit: What it may be at most, or what it should be.
    """

    rule: str
    object: str
    node: str = ""
    gpu: str = ""
    used: int | float | str = ""
    limit: int | float | str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it the same violation a moment later."""
        return self.rule, self.object, self.node, self.gpu

    def __str__(self) -> str:
        where = f" on node {self.node}" if self.node else ""
        where += f", GPU {self.gpu}" if self.gpu else ""
        return f"{self.rule}: {self.object}{where}: found {self.used}, allowed {self.limit}"
