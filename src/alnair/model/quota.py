"""A namespace's share of the cluster."""

import msgspec


class Quota(msgspec.Struct, frozen=True):
    """An ElasticQuota; amounts are in base units, and a resource that is absent has no bound.

    `min` is guaranteed to the namespace, `max` is never exceeded.
    """

    name: str
    min: dict[str, int] = {}
    max: dict[str, int] = {}
    #: Why the object cannot be read, for people; empty if it can.
    problem: str = ""
