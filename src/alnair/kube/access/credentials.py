"""Who we are to the API server, and how that changes while a process runs.

Tokens rotate, certificates are renewed and plug-ins hand out credentials with an expiry, so a
connection does not hold a secret: it holds a source of `Credential` values which the client asks
before each request. Asking is cheap; a source touches disk or starts a process only when what it
has is due.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from alnair.kube.errors import ConfigError

#: Seconds after which a token or certificate file is read again; client-go's value for service
#: account tokens.
REREAD_AFTER = 60.0


class Certificate(msgspec.Struct, frozen=True):
    """A client certificate chain and its key, both PEM."""

    chain: bytes
    key: bytes


class Credential(msgspec.Struct, frozen=True):
    """What is presented to the server: nothing, a header, a client certificate, or both."""

    authorization: str | None = None
    certificate: Certificate | None = None


class Credentials(Protocol):
    """A source of the credential that is valid now."""

    async def current(self) -> Credential:
        """Return the credential to present.

        Raises:
            ConfigError: It cannot be had: a file is gone, a plug-in failed.
        """
        ...

    def invalidate(self) -> bool:
        """Note that the server refused the credential; return whether another one may come."""
        ...


class Fixed:
    """A credential that was written down once and never changes."""

    def __init__(self, credential: Credential | None = None) -> None:
        self._credential = credential or Credential()

    async def current(self) -> Credential:
        """Return the one credential."""
        return self._credential

    def invalidate(self) -> bool:
        """Say that no other credential will come."""
        return False


class Files:
    """A token file, or a certificate and key file, that others replace while we run (rotation).

    Args:
        token: File with a bearer token, None if there is none.
        chain: Client certificate as a file or as PEM data, None if there is none; then `key` too.
        key: Key of the certificate, likewise.
        authorization: Header to present when there is no token file.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        token: Path | None = None,
        chain: Path | bytes | None = None,
        key: Path | bytes | None = None,
        authorization: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._token = token
        self._chain = chain
        self._key = key
        self._authorization = authorization
        self._clock = clock
        self._read_at = float("-inf")
        self._credential = Credential()

    async def current(self) -> Credential:
        """Return the credential of the files, read again when it is a minute old.

        A file that vanished for a moment (kubelet swaps a symbolic link) does not end a process
        that has a credential.
        """
        now = self._clock()
        if now - self._read_at >= REREAD_AFTER:
            try:
                fresh = self._read()
            except ConfigError:
                if self._read_at == float("-inf"):
                    raise
            else:
                # An equal value keeps its identity, so that the client does not load the same
                # certificate again.
                if fresh != self._credential:
                    self._credential = fresh
            self._read_at = now
        return self._credential

    def invalidate(self) -> bool:
        """Read the files again at the next request; say whether they differ by now."""
        try:
            changed = self._read() != self._credential
        except ConfigError:
            return False
        self._read_at = float("-inf")
        return changed

    def _read(self) -> Credential:
        authorization = self._authorization
        if self._token is not None:
            token = read(self._token, "tokenFile").decode("utf-8", "replace").strip()
            if not token:
                raise ConfigError(str(self._token), "", "the token file is empty")
            authorization = f"Bearer {token}"
        certificate = None
        if self._chain is not None and self._key is not None:
            certificate = Certificate(
                _pem(self._chain, "client-certificate"), _pem(self._key, "client-key")
            )
        return Credential(authorization, certificate)


def _pem(source: Path | bytes, field: str) -> bytes:
    return source if isinstance(source, bytes) else read(source, field)


def read(path: Path, field: str) -> bytes:
    """Read a file that a configuration names.

    Raises:
        ConfigError: It cannot be read; says the path, the field that named it, and why.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            str(path), field, f"cannot be read: {error.strerror or error}; check path and rights"
        ) from error
