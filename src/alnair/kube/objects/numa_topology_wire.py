"""NodeResourceTopology objects as they come over the wire: only the fields that are read."""

from msgspec import Struct

from alnair.kube.objects.wire import ObjectMeta


class ManagedField(Struct, gc=False):
    """Who wrote an object, and when."""

    time: str | None = None


class ReportMeta(ObjectMeta):
    """Metadata with the times of its writes."""

    managed_fields: list[ManagedField] | None = None


class NamedText(Struct, gc=False):
    """A named text value."""

    name: str = ""
    value: str = ""


class ZoneCostWire(Struct, gc=False):
    """Distance to another zone."""

    name: str = ""
    value: int = 255


class ZoneResourceWire(Struct, gc=False):
    """What is available of a resource in a zone."""

    name: str = ""
    available: str | int = 0


class ZoneWire(Struct, gc=False):
    """A topology zone of a node."""

    name: str = ""
    type: str = ""
    costs: list[ZoneCostWire] | None = None
    resources: list[ZoneResourceWire] | None = None


class NodeResourceTopologyWire(Struct, rename="camel"):
    """A report of a topology exporter, named after its node."""

    metadata: ReportMeta
    topology_policies: list[str] | None = None
    attributes: list[NamedText] | None = None
    zones: list[ZoneWire] | None = None
