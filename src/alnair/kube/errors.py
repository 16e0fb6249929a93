"""What can go wrong with the API server, as types.

    KubeError
    ├── ConfigError           kubeconfig or in-cluster files: which file, which field, the fix
    ├── ConnectionFailed      no complete answer came (cause chained); it may or may not have acted
    │   └── WatchTimeout          a stream that was open brought nothing for long
    ├── ProtocolError         an answer came that is not what Kubernetes says it sends
    ├── LeadershipLost        another leads by now, or nobody could be asked in time
    └── ApiError              the API server answered with a refusal
        ├── BadRequest            400
        ├── Unauthorized          401
        ├── Forbidden             403
        ├── NotFound              404
        ├── AlreadyExists         409, reason AlreadyExists
        ├── Conflict              409, any other reason (stale resourceVersion, pod bound already)
        ├── Gone                  410, reasons Gone and Expired (list again)
        ├── Invalid               422
        ├── TooManyRequests       429 (priority and fairness, or a disruption budget)
        └── ServerUnavailable     5xx
            └── ServerTimeout         504, reasons Timeout and ServerTimeout

Only three things say whether to try again: `retry_after`, `is_transient`, and neither.
"""

# ruff: noqa: N818 - these are Kubernetes' own names for its refusals, known to every reader of its
# API.

from collections.abc import Mapping

import msgspec


class KubeError(Exception):
    """Root of everything this package raises on purpose."""


class ConfigError(KubeError):
    """The credentials or the address of the cluster cannot be read.

    Attributes:
        source: File or environment variable at fault.
        field: Path of the field inside the file, "" for the whole file.
        problem: What is wrong and what to do.
    """

    def __init__(self, source: str, field: str, problem: str) -> None:
        super().__init__(f"{source}: {field + ': ' if field else ''}{problem}")
        self.source = source
        self.field = field
        self.problem = problem


class ConnectionFailed(KubeError):
    """The network or the peer failed before a complete answer came."""


class WatchTimeout(ConnectionFailed):
    """A stream brought nothing for so long that it counts as dead, though it may only be quiet."""


class ProtocolError(KubeError):
    """The answer cannot be decoded: cut JSON, another server, or a type of ours does not fit."""


class LeadershipLost(KubeError):
    """The lease was not renewed in time or another holds it; the leader's work was stopped."""


class Cause(msgspec.Struct, frozen=True):
    """One entry of `Status.details.causes`."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """`Status.details`: which object, and why field by field."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The `meta/v1 Status` object that Kubernetes answers in case of a refusal."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


class ApiError(KubeError):
    """A refusal by the API server.

    Attributes:
        status: HTTP status code.
        reason: Kubernetes' reason in CamelCase, "" if none was given.
        message: The server's sentence.
        retry_after: Seconds that the server asks to wait, None if it does not ask.
        details: Object and causes, None if none were given.
    """

    #: Whether the same request may succeed later without anyone changing it.
    is_transient = False

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        details: Details | None = None,
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.details = details


class BadRequest(ApiError):
    """400: the request itself is malformed."""


class Unauthorized(ApiError):
    """401: the credentials are missing, wrong or expired."""


class Forbidden(ApiError):
    """403: RBAC or an admission plugin refuses."""


class NotFound(ApiError):
    """404: no such object, or the kind is not installed."""


class AlreadyExists(ApiError):
    """409 on create: an object of this name is there."""


class Conflict(ApiError):
    """409: someone changed the object first, owns the field, or has bound the pod already."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token is too old; list again."""

    is_transient = True


class Invalid(ApiError):
    """422: a field has a value that validation refuses; `details.causes` says which."""


class TooManyRequests(ApiError):
    """429: wait `retry_after` seconds, then the same request may pass."""

    is_transient = True


class ServerUnavailable(ApiError):
    """5xx: the server is starting, stopping, overloaded or has failed inside."""

    is_transient = True


class ServerTimeout(ServerUnavailable):
    """The server gave up waiting; the request may have acted."""


_BY_REASON: Mapping[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Gone,
    "Timeout": ServerTimeout,
    "ServerTimeout": ServerTimeout,
}
_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
    504: ServerTimeout,
}

_STATUS = msgspec.json.Decoder(Status)
#: Bytes of a non-JSON answer (a proxy's page, a plain-text 503) that are worth showing.
_SHOWN = 200


def from_status(status: Status, code: int, retry_after: float | None = None) -> ApiError:
    """Build the typed error of a decoded Status.

    Args:
        status: The object that was answered, or that came as the object of an ERROR watch event.
        code: HTTP status code, used where the Status has none.
        retry_after: Seconds from the Retry-After header; the Status' own number is the fallback.
    """
    code = status.code or code
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(code)
    if kind is None:
        kind = ServerUnavailable if code >= 500 else ApiError
    if retry_after is None and status.details is not None and status.details.retry_after_seconds:
        retry_after = float(status.details.retry_after_seconds)
    message = status.message or "the server gave no message"
    return kind(code, status.reason, message, retry_after, status.details)


def from_answer(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Build the typed error of an HTTP answer.

    Args:
        code: HTTP status code, at least 400 (or a redirect, which an API server never sends on
            purpose).
        body: The whole body, a Status as JSON or anything at all.
        retry_after: The Retry-After header as it came. Kubernetes sends seconds; a date is not
            understood and ignored.
    """
    wait = float(retry_after) if retry_after is not None and retry_after.isdigit() else None
    try:
        status = _STATUS.decode(body)
    except msgspec.MsgspecError:
        text = body[:_SHOWN].decode("utf-8", "replace").strip()
        status = Status(message=text or "empty answer")
    return from_status(status, code, wait)
