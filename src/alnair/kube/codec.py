"""JSON of the API server to typed values and back.

The only module that knows the list and watch envelopes. Lists are cut into raw items first and each
item is decoded when asked for, so that a page of decoded objects never exists at once. Watch lines
are decoded in one step together with their envelope, whole chunks at a time.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, Literal, TypeVar, cast

import msgspec

from alnair.kube.errors import KubeError, ProtocolError, Status, from_status

T = TypeVar("T")

#: What can be sent: a plain JSON object, or a Struct that encodes to one.
Body = msgspec.Struct | Mapping[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change of one object; `object` is its state after it, for DELETED its last one."""

    type: EventType
    object: T


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _ListOf(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Identity(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    name: str = ""
    namespace: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Identity = _Identity()


class _Envelope(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


_LIST = msgspec.json.Decoder(_ListOf)
_OBJECT = msgspec.json.Decoder(_Object)
_ENVELOPE = msgspec.json.Decoder(_Envelope)
_STATUS = msgspec.json.Decoder(Status)
_ENCODER = msgspec.json.Encoder()


class Undecodable(msgspec.Struct, frozen=True):
    """An object that is fine JSON but does not fit our type; the rest can go on without it.

    Attributes:
        type: The watch event's type, or "LISTED".
        name: The object's name.
        namespace: Its namespace, "" for cluster-wide kinds.
        problem: What did not fit, with the path inside the object.
        after: How many events of the same lines came before it.
    """

    type: str
    name: str
    namespace: str
    problem: str
    after: int = 0


def _check(undecodable: list[Undecodable]) -> None:
    if undecodable:
        first = undecodable[0]
        where = f"{first.namespace}/{first.name}" if first.namespace else first.name
        raise ProtocolError(f"{where}: does not fit our type: {first.problem}")


class Page(Generic[T]):
    """One page of a list. Iterating decodes the items one by one; iterate once.

    Attributes:
        resource_version: The collection's version; a watch can start from it.
        continue_: Token for the next page, "" on the last one.
        undecodable: The items that did not fit the type, filled while iterating.
    """

    def __init__(self, codec: "Codec[T]", data: bytes) -> None:
        try:
            raw = _LIST.decode(data)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"the answer is no list of objects: {error}") from error
        self._codec = codec
        self._items = raw.items or []
        self.resource_version = raw.metadata.resource_version
        self.continue_ = raw.metadata.continue_
        self.undecodable: list[Undecodable] = []

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        decode = self._codec.object.decode
        for raw in self._items:
            try:
                item = decode(raw)
            except msgspec.ValidationError as error:
                self.undecodable.append(_undecodable("LISTED", raw, error))
                continue
            yield item

    def check(self) -> None:
        """Raise a ProtocolError if an item did not fit; for callers that need them all."""
        _check(self.undecodable)


class Lines(Generic[T]):
    """What some watch lines held.

    Attributes:
        events: Changes, in order.
        undecodable: Changes whose objects did not fit.
        resource_version: Where to resume, "" if no line said.
        error: What ended the stream after these events, None if it goes on.
    """

    __slots__ = ("error", "events", "resource_version", "undecodable")

    def __init__(self, events: list[WatchEvent[T]], resource_version: str) -> None:
        self.events = events
        self.undecodable: list[Undecodable] = []
        self.resource_version = resource_version
        self.error: KubeError | None = None

    def check(self) -> None:
        """Raise a ProtocolError if an object did not fit; for callers that need them all."""
        _check(self.undecodable)


class Codec(Generic[T]):
    """The decoders of one type."""

    def __init__(self, kind: type[T]) -> None:
        self.object = msgspec.json.Decoder(kind)
        # The type checker cannot see a generic filled at run time.
        event = cast("Any", WatchEvent)[kind]
        self._events: msgspec.json.Decoder[WatchEvent[T]] = msgspec.json.Decoder(event)

    def decode(self, data: bytes) -> T:
        """Decode one object.

        Raises:
            ProtocolError: It is no JSON, or does not fit the type.
        """
        try:
            return self.object.decode(data)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"the answer does not decode: {error}") from error

    def lines(self, data: bytes) -> Lines[T]:
        """Decode whole watch lines, up to the first that is an ERROR event or no event at all."""
        try:
            events = self._events.decode_lines(data)
        except msgspec.MsgspecError:
            # A bookmark, an error, an object that does not fit, or rubbish: look line by line.
            return self._carefully(data)
        return Lines(events, version_of(events[-1].object) if events else "")

    def _carefully(self, data: bytes) -> Lines[T]:
        found: Lines[T] = Lines([], "")
        for line in data.split(b"\n"):
            if not line.strip():
                continue
            try:
                event = self._events.decode(line)
            except msgspec.MsgspecError as error:
                _oddity(line, error, found)
                if found.error is not None:
                    break
            else:
                found.events.append(event)
                found.resource_version = version_of(event.object) or found.resource_version
        return found


def _oddity(line: bytes, error: msgspec.MsgspecError, found: Lines[T]) -> None:
    """Add to `found` what a line says that is no change of an object of our type."""
    try:
        envelope = _ENVELOPE.decode(line)
        if envelope.type == "ERROR":
            status = _STATUS.decode(envelope.object)
            found.error = from_status(status, status.code or 500)
            return
        identity = _OBJECT.decode(envelope.object).metadata
    except msgspec.MsgspecError as wrong:
        found.error = ProtocolError(f"a watch line is no event: {wrong}: {line[:80]!r}")
        return
    found.resource_version = identity.resource_version or found.resource_version
    if envelope.type != "BOOKMARK":
        found.undecodable.append(
            Undecodable(
                envelope.type,
                identity.name,
                identity.namespace,
                str(error),
                len(found.events),
            )
        )


_CODECS: dict[Any, Codec[Any]] = {}


def codec_of(kind: type[T]) -> Codec[T]:
    """Return the decoders of a type; building them is slow, so each type has one set."""
    codec = _CODECS.get(kind)
    if codec is None:
        codec = _CODECS[kind] = Codec(kind)
    return codec


def encode(body: Body) -> bytes:
    """Encode a manifest or a patch."""
    return _ENCODER.encode(body)


def version_of(value: object) -> str:
    """Return an object's resourceVersion, "" if its type does not carry one."""
    if isinstance(value, dict):
        metadata = value.get("metadata")
        return str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""
    metadata = getattr(value, "metadata", None)
    return getattr(metadata, "resource_version", "") or ""


def key_of(value: object) -> tuple[str, str]:
    """Return an object's (namespace, name); the namespace is "" for cluster-wide kinds."""
    if isinstance(value, Mapping):
        metadata = value.get("metadata") or {}
        return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    metadata = getattr(value, "metadata", None)
    return getattr(metadata, "namespace", "") or "", getattr(metadata, "name", "") or ""


def _undecodable(kind: str, raw: msgspec.Raw, error: msgspec.ValidationError) -> Undecodable:
    try:
        identity = _OBJECT.decode(raw).metadata
    except msgspec.MsgspecError:
        identity = _Identity()
    return Undecodable(kind, identity.name, identity.namespace, str(error))
