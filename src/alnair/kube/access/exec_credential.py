"""Credential plug-ins: the `exec` section of a kubeconfig user.

Protocol `client.authentication.k8s.io`, versions v1 and v1beta1 (v1alpha1 was removed from kubectl
in 1.24): we start the command with our side of the `ExecCredential` in `KUBERNETES_EXEC_INFO`, and
it prints its side on stdout.
"""

import asyncio
import datetime as dt
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from alnair.kube.access.credentials import Certificate, Credential
from alnair.kube.errors import ConfigError

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
#: Seconds before the stated expiry at which a new credential is asked for, so that none expires on
#: the way.
MARGIN = 5.0
#: Seconds a plug-in may take; a login in a browser is the slow case.
PATIENCE = 300.0


class ExecConfig(msgspec.Struct, frozen=True):
    """How to start the plug-in, with every path made absolute.

    Attributes:
        source: The kubeconfig that names it, and `field`, where; both for errors.
        cluster: The `spec.cluster` to send if the plug-in asks for it, None if not.
        interactive: Whether it may read from a terminal.
    """

    source: str
    field: str
    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    install_hint: str = ""
    interactive: bool = False
    cluster: Mapping[str, object] | None = None


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: dt.datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _Answer | None = None


def utc_now() -> dt.datetime:
    """Return the wall clock, which is what expiry stamps are compared with."""
    return dt.datetime.now(dt.UTC)


class ExecPlugin:
    """Credentials from a command, kept until they expire or are refused."""

    def __init__(self, config: ExecConfig, now: Callable[[], dt.datetime] = utc_now) -> None:
        self._config = config
        self._now = now
        self._lock = asyncio.Lock()
        self._credential: Credential | None = None
        self._expiry: dt.datetime | None = None

    async def current(self) -> Credential:
        """Return the kept credential, or start the plug-in (once, however many requests wait)."""
        if self._credential is not None and not self._expired():
            return self._credential
        async with self._lock:
            if self._credential is None or self._expired():
                answer = await self._ask()
                self._credential = _credential(self._config, answer)
                self._expiry = answer.expiration_timestamp
            return self._credential

    def invalidate(self) -> bool:
        """Forget the credential: the next request starts the plug-in."""
        self._credential = None
        return True

    def _expired(self) -> bool:
        if self._expiry is None:
            return False
        return (self._expiry - self._now()).total_seconds() <= MARGIN

    async def _ask(self) -> _Answer:
        config = self._config
        output = await self._run()
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.MsgspecError as error:
            raise self._failed(f"does not print an ExecCredential: {error}") from error
        if answer.api_version != config.api_version:
            raise self._failed(
                f"prints apiVersion {answer.api_version}, the kubeconfig says {config.api_version}"
            )
        if answer.status is None:
            raise self._failed("prints an ExecCredential without status")
        return answer.status

    async def _run(self) -> bytes:
        config = self._config
        interactive = config.interactive and sys.stdin.isatty()
        spec: dict[str, object] = {"interactive": interactive}
        if config.cluster is not None:
            spec["cluster"] = config.cluster
        info = {"apiVersion": config.api_version, "kind": "ExecCredential", "spec": spec}
        env = {
            **os.environ,
            **config.env,
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                config.command,
                *config.args,
                env=env,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"; {config.install_hint.strip()}" if config.install_hint else ""
            raise self._failed(f"cannot be started: {error.strerror}{hint}") from error
        try:
            async with asyncio.timeout(PATIENCE):
                output, problem = await process.communicate()
        except TimeoutError as error:
            raise self._failed(f"gave no answer in {PATIENCE:.0f} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            said = (problem or b"").decode("utf-8", "replace").strip()[-500:]
            raise self._failed(f"exited with {process.returncode}: {said or 'nothing on stderr'}")
        return output

    def _failed(self, problem: str) -> ConfigError:
        config = self._config
        name = Path(config.command).name
        return ConfigError(config.source, config.field, f"the plug-in {name!r} {problem}")


def _credential(config: ExecConfig, answer: _Answer) -> Credential:
    certificate = None
    if answer.client_certificate_data and answer.client_key_data:
        certificate = Certificate(
            answer.client_certificate_data.encode(), answer.client_key_data.encode()
        )
    elif answer.client_certificate_data or answer.client_key_data:
        raise ConfigError(
            config.source,
            config.field,
            "the plug-in gives a client certificate without its key or a key alone",
        )
    if certificate is None and not answer.token:
        raise ConfigError(
            config.source,
            config.field,
            "the plug-in gives neither a token nor a client certificate",
        )
    return Credential(f"Bearer {answer.token}" if answer.token else None, certificate)
