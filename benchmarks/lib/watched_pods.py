"""What benchmarks read of the pods that they watch: where each is, and what is said of it."""

import msgspec


class _Meta(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class WatchedPod(msgspec.Struct):
    """A pod as far as a benchmark looks at it."""

    metadata: _Meta
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)
