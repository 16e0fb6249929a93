"""Requests to one API server as typed calls.

A call is one HTTP request and either returns the decoded answer or raises from `errors`. Refusals
with a Retry-After (429 and 5xx: the server did nothing yet) are repeated within the call's time;
everything else is the caller's matter, because only the caller knows whether a request that may
have acted can be sent again.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from alnair.kube.access.connection import Connection
from alnair.kube.codec import Body, Page, codec_of, encode, key_of
from alnair.kube.errors import Gone
from alnair.kube.resources import PODS, Resource
from alnair.kube.transport import USER_AGENT, Transport
from alnair.kube.watch import Watch

T = TypeVar("T")
#: Content type of patches that merge lists by key, such as conditions.
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
MERGE_PATCH = "application/merge-patch+json"
#: JSON is YAML, and the server reads it as such much faster.
APPLY_PATCH = "application/apply-patch+yaml"


class Listing(Generic[T]):
    """A whole list, decoded.

    Attributes:
        items: The objects.
        resource_version: The collection's version; a watch that starts here misses nothing.
    """

    __slots__ = ("items", "resource_version")

    def __init__(self, items: list[T], resource_version: str) -> None:
        self.items = items
        self.resource_version = resource_version


class Client:
    """The API server, for one process. Use as an async context manager.

    Args:
        connection: From `config.load`.
        max_connections: Requests in flight, watches included; more wait.
        user_agent: Shown in the server's audit log and priority-and-fairness.
        timeout: Seconds for one call with its repeats; watches have their own.
        overdue: Told of each request whose answer takes long; see `Transport`.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        max_connections: int = 64,
        user_agent: str = USER_AGENT,
        timeout: float = 30.0,
        overdue: Callable[[str], None] | None = None,
    ) -> None:
        self.connection = connection
        self.transport = Transport(
            connection,
            max_connections=max_connections,
            user_agent=user_agent,
            timeout=timeout,
            overdue=overdue,
        )

    async def __aenter__(self) -> Self:
        await self.transport.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.transport.close()

    async def get(
        self,
        resource: Resource[T],
        name: str,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
    ) -> T:
        """Read one object.

        Raises:
            NotFound: There is none.
        """
        data = await self._request("GET", resource.item(name, namespace, subresource))
        return codec_of(resource.type).decode(data)

    async def pages(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        page_size: int = 500,
    ) -> AsyncGenerator[Page[T]]:
        """Read a collection page by page, all pages of one moment.

        Raises:
            Gone: The moment is too old for the server by now; start again.
        """
        path = resource.collection(namespace)
        query = _selectors(label_selector, field_selector)
        if page_size:
            query["limit"] = str(page_size)
        while True:
            data = await self._request("GET", path, query=query)
            page = Page(codec_of(resource.type), data)
            del data
            yield page
            if not page.continue_:
                return
            query["continue"] = page.continue_

    async def list(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        page_size: int = 500,
    ) -> Listing[T]:
        """Read a whole collection: of one namespace, or of all.

        If the pages take so long that their moment expires, the list is read once more in one
        piece.

        Raises:
            ProtocolError: An object does not fit the resource's type.
        """
        for size in (page_size, 0):
            items: list[T] = []
            version = ""
            try:
                async for page in self.pages(
                    resource,
                    namespace,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    page_size=size,
                ):
                    items.extend(page)
                    page.check()
                    version = page.resource_version
            except Gone:
                if not size:
                    raise
                continue
            return Listing(items, version)
        raise AssertionError("the second round returns or raises")

    async def create(
        self,
        resource: Resource[T],
        obj: Body,
        namespace: str | None = None,
        *,
        name: str | None = None,
        subresource: str | None = None,
        strict: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Create an object, or a subresource of the object `name`.

        Args:
            resource: Of which kind.
            obj: What is created.
            namespace: Where.
            name: Whose subresource it is.
            subresource: Such as `binding`.
            strict: A field that the API server does not know is an error, and not left out.
            dry_run: Only try whether it could be.

        Raises:
            AlreadyExists: An object of this name is there.
            BadRequest: A value has another type, or a field is not known.
            Invalid: A field's value is refused.
        """
        namespace = self._namespace(resource, obj, namespace)
        if subresource:
            path = resource.item(name or key_of(obj)[1], namespace, subresource)
        else:
            path = resource.collection(namespace)
        query = {"fieldValidation": "Strict"} if strict else {}
        if dry_run:
            query["dryRun"] = "All"
        data = await self._request("POST", path, body=encode(obj), query=query)
        return codec_of(resource.type).decode(data)

    async def replace(
        self,
        resource: Resource[T],
        obj: Body,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
    ) -> T:
        """Replace an object; if it carries a resourceVersion, only while it is that version.

        Raises:
            Conflict: It is another version by now.
        """
        path = resource.item(key_of(obj)[1], self._namespace(resource, obj, namespace), subresource)
        data = await self._request("PUT", path, body=encode(obj))
        return codec_of(resource.type).decode(data)

    async def apply(
        self,
        resource: Resource[T],
        obj: Body,
        *,
        field_manager: str,
        force: bool = True,
        subresource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
    ) -> T:
        """Say what our fields shall be (server-side apply); creates the object if there is none.

        Args:
            resource: Kind of the object.
            obj: Our fields, with apiVersion, kind and metadata.name.
            field_manager: Whose fields these are; fields left out that we owned before are removed.
            force: Take fields over from other managers.
            subresource: Such as "status".
            namespace: Where, if the object does not say.
            name: Which, if the object does not say.

        Raises:
            Conflict: Without `force`: another manager owns one of the fields.
        """
        path = resource.item(
            name or key_of(obj)[1], self._namespace(resource, obj, namespace), subresource
        )
        query = {"fieldManager": field_manager, "force": "true" if force else "false"}
        data = await self._request(
            "PATCH", path, query=query, body=encode(obj), content_type=APPLY_PATCH
        )
        return codec_of(resource.type).decode(data)

    async def merge_patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Body,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
    ) -> T:
        """Change the fields that the patch names; null removes one (RFC 7386)."""
        data = await self._request(
            "PATCH",
            resource.item(name, namespace, subresource),
            body=encode(patch),
            content_type=MERGE_PATCH,
        )
        return codec_of(resource.type).decode(data)

    async def delete(
        self,
        resource: Resource[T],
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        grace_seconds: int | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete one object; it may linger until finalizers and the grace period are done.

        Args:
            resource: Kind of the object.
            name: Which one.
            namespace: Where.
            uid: Delete only if it is still this one.
            grace_seconds: Instead of the object's own grace period; 0 deletes at once.
            propagation: "Background", "Foreground" or "Orphan".

        Raises:
            NotFound: There is none.
            Conflict: It has another uid.
        """
        body = encode(_delete_options(uid, grace_seconds, propagation))
        await self._request("DELETE", resource.item(name, namespace), body=body)

    async def delete_collection(
        self,
        resource: Resource[T],
        namespace: str | None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Delete all objects of one namespace that the selectors select.

        Raises:
            ValueError: A namespaced kind without a namespace; the server has no such call.
        """
        if resource.namespaced and not namespace:
            raise ValueError(f"{resource.kind}: say in which namespace to delete all")
        await self._request(
            "DELETE",
            resource.collection(namespace),
            query=_selectors(label_selector, field_selector),
            body=encode(_delete_options(None, grace_seconds, None)),
        )

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Give a pod to a node; the annotations reach the pod in the same write.

        Raises:
            Conflict: The pod is bound already, is being deleted, or has another uid.
            NotFound: The pod is gone.
        """
        metadata: dict[str, object] = {"name": name, "namespace": namespace, "uid": uid}
        if annotations:
            metadata["annotations"] = annotations
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._request("POST", PODS.item(name, namespace, "binding"), body=encode(binding))

    async def evict(
        self,
        namespace: str,
        name: str,
        uid: str | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Ask for a pod's eviction, which disruption budgets may refuse.

        Raises:
            TooManyRequests: A disruption budget refuses now; not repeated by itself, for it may
                take hours.
            Conflict: The pod has another uid.
            NotFound: The pod is gone.
        """
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _delete_options(uid, grace_seconds, None),
        }
        await self._request(
            "POST",
            PODS.item(name, namespace, "eviction"),
            body=encode(eviction),
            repeat=False,
        )

    def watch(
        self,
        resource: Resource[T],
        *,
        resource_version: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        timeout_seconds: int = 300,
        bookmarks: bool = True,
        idle_timeout: float | None = 90.0,
    ) -> Watch[T]:
        """Follow the changes after a version; see `Watch`.

        Args:
            resource: What to watch.
            resource_version: From a list, an object, or a former watch's `resource_version`.
            namespace: One namespace, None for all.
            label_selector: Only objects that match.
            field_selector: Only objects that match.
            timeout_seconds: After which the server ends the stream.
            bookmarks: Ask for marks that keep the version fresh while nothing happens.
            idle_timeout: Seconds without a byte after which the connection counts as dead. The
                server sends a bookmark each minute, so the default only cuts connections that are
                dead; None waits forever.
        """
        query = _selectors(label_selector, field_selector)
        query["watch"] = "true"
        query["timeoutSeconds"] = str(timeout_seconds)
        if bookmarks:
            query["allowWatchBookmarks"] = "true"
        return Watch(
            self.transport,
            codec_of(resource.type),
            resource.collection(namespace),
            query,
            resource_version,
            idle_timeout,
        )

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send any request, such as GET /readyz, and return the body."""
        return await self._request(
            method, path, query=query, body=body, content_type=content_type, headers=headers
        )

    async def _request(self, method: str, path: str, **how: Any) -> bytes:
        """Send any request, as `Transport.request` does: all but watches go through here."""
        return await self.transport.request(method, path, **how)

    @staticmethod
    def _namespace(resource: Resource[T], obj: Body, namespace: str | None) -> str | None:
        if not resource.namespaced:
            return None
        own = key_of(obj)[0]
        if own and namespace and own != namespace:
            raise ValueError(
                f"{resource.kind}: the object says namespace {own!r}, not {namespace!r}"
            )
        if not own and not namespace:
            raise ValueError(f"{resource.kind}: neither the object nor the call says the namespace")
        return namespace or own


def _selectors(labels: str | None, fields: str | None) -> dict[str, str]:
    query: dict[str, str] = {}
    if labels:
        query["labelSelector"] = labels
    if fields:
        query["fieldSelector"] = fields
    return query


def _delete_options(
    uid: str | None, grace_seconds: int | None, propagation: str | None
) -> dict[str, object]:
    options: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if propagation:
        options["propagationPolicy"] = propagation
    return options
