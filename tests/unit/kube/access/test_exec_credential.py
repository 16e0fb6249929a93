"""Credential plug-ins, with real commands."""

import datetime as dt
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from alnair.kube.access import client_config
from alnair.kube.access.connection import Connection
from alnair.kube.access.exec_credential import ExecConfig, ExecPlugin
from alnair.kube.errors import ConfigError

V1 = "client.authentication.k8s.io/v1"
NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)

#: Prints a token that counts its calls, and keeps what it was told in a file beside it.
PLUGIN = f"""#!{sys.executable}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
calls = here / "calls"
count = int(calls.read_text()) + 1 if calls.exists() else 1
calls.write_text(str(count))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
(here / "told").write_text(json.dumps({{"info": info, "args": sys.argv[1:],
    "env": os.environ.get("EXTRA"), "stdin": sys.stdin.read()}}))
status = {{"token": f"token-{{count}}"}}
if (here / "expiry").exists():
    status["expirationTimestamp"] = (here / "expiry").read_text()
print(json.dumps({{"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}}))
"""


def plugin(folder: Path, text: str = PLUGIN) -> Path:
    path = folder / "plugin"
    path.write_text(text)
    path.chmod(0o755)
    return path


def load(folder: Path, entry: dict[str, Any]) -> Connection:
    document = {
        "current-context": "x",
        "clusters": [
            {
                "name": "c",
                "cluster": {
                    "server": "https://host",
                    "certificate-authority-data": "Q0E=",
                    "tls-server-name": "inner",
                    "proxy-url": "http://proxy",
                    "extensions": [
                        {"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}
                    ],
                },
            }
        ],
        "users": [{"name": "u", "user": {"exec": entry}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "config"
    path.write_text(json.dumps(document))
    return client_config.load(path)


async def test_the_plugin_is_told_what_kubectl_tells_and_asked_once(tmp_path: Path) -> None:
    plugin(tmp_path)
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "./plugin",
        "args": ["get-token", "--now"],
        "env": [{"name": "EXTRA", "value": "yes"}],
        "provideClusterInfo": True,
    }
    connection = load(tmp_path, entry)
    for _ in range(3):
        credential = await connection.credentials.current()
        assert credential.authorization == "Bearer token-1"
    told = json.loads((tmp_path / "told").read_text())
    assert told["args"] == ["get-token", "--now"]
    assert told["env"] == "yes"
    assert told["stdin"] == ""
    assert told["info"] == {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://host",
                "certificate-authority-data": "Q0E=",
                "tls-server-name": "inner",
                "proxy-url": "http://proxy",
                "config": {"a": 1},
            },
        },
    }


async def test_a_credential_is_kept_until_shortly_before_its_expiry(tmp_path: Path) -> None:
    now = NOW
    (tmp_path / "expiry").write_text("2026-11-21T13:00:00Z")
    source = ExecPlugin(ExecConfig("config", "exec", V1, str(plugin(tmp_path))), now=lambda: now)
    assert (await source.current()).authorization == "Bearer token-1"
    now = NOW + dt.timedelta(minutes=59, seconds=50)
    assert (await source.current()).authorization == "Bearer token-1"
    now = NOW + dt.timedelta(minutes=59, seconds=56)
    assert (await source.current()).authorization == "Bearer token-2"


async def test_a_refused_credential_is_replaced(tmp_path: Path) -> None:
    source = ExecPlugin(ExecConfig("config", "exec", V1, str(plugin(tmp_path))))
    await source.current()
    assert source.invalidate()
    assert (await source.current()).authorization == "Bearer token-2"


def answer(**status: str) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


async def test_a_client_certificate_is_taken(tmp_path: Path) -> None:
    text = answer(clientCertificateData="CERT", clientKeyData="KEY")
    path = plugin(tmp_path, f"#!/bin/sh\necho '{text}'\n")
    credential = await ExecPlugin(ExecConfig("config", "exec", V1, str(path))).current()
    assert credential.certificate is not None
    assert (credential.certificate.chain, credential.certificate.key) == (b"CERT", b"KEY")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'not logged in' >&2; exit 3", "exited with 3: not logged in"),
        ("exit 1", "exited with 1: nothing on stderr"),
        ("echo token", "does not print an ExecCredential"),
        (f"echo '{answer()}'", "neither a token nor a client certificate"),
        (f"echo '{answer(clientKeyData='K')}'", "without its key or a key alone"),
        (f"echo '{answer(token='t').replace('/v1', '/v1beta1')}'", "prints apiVersion"),
        (f"echo '{answer().replace('status', 'other')}'", "without status"),
    ],
)
async def test_a_plugin_that_fails_is_named_with_what_it_said(
    tmp_path: Path, script: str, says: str
) -> None:
    path = plugin(tmp_path, f"#!/bin/sh\n{script}\n")
    source = ExecPlugin(ExecConfig("config", "users[u].user.exec", V1, str(path)))
    with pytest.raises(
        ConfigError, match=r"^config: users\[u\]\.user\.exec: the plug-in"
    ) as caught:
        await source.current()
    assert says in caught.value.problem


async def test_a_missing_plugin_is_told_with_its_install_hint(tmp_path: Path) -> None:
    entry = {"apiVersion": V1, "command": "./gone", "installHint": "Install it with pip."}
    connection = load(tmp_path, entry)
    with pytest.raises(ConfigError, match=r"cannot be started: No such file.*Install it with pip"):
        await connection.credentials.current()


def test_a_plugin_that_needs_a_terminal_is_refused_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    entry = {"apiVersion": V1, "command": "x", "interactiveMode": "Always"}
    with pytest.raises(ConfigError, match="there is no terminal to ask at"):
        load(tmp_path, entry)
