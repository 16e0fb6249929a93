"""From kubeconfig files and pods' service accounts to connections."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from alnair.kube.access import client_config
from alnair.kube.access.connection import Connection
from alnair.kube.access.credentials import Files
from alnair.kube.access.kubeconfig import merge
from alnair.kube.errors import ConfigError

SERVER = "https://cluster.example:6443"


def document(**changes: Any) -> dict[str, Any]:
    """A kubeconfig with one context "one"; `cluster` and `user` are updated."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": changes.get("current", "one"),
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **changes.get("cluster", {})}}],
        "users": [{"name": "u", "user": changes.get("user", {})}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", **changes.get("inside", {})}}
        ],
    }


def load(folder: Path, context: str | None = None, **changes: Any) -> Connection:
    path = folder / "config"
    path.write_text(json.dumps(document(**changes)))
    return client_config.load(path, context)


async def authorization(connection: Connection) -> str | None:
    return (await connection.credentials.current()).authorization


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


async def test_a_token_and_data_are_read(tmp_path: Path) -> None:
    connection = load(
        tmp_path,
        cluster={"certificate-authority-data": encoded(b"CA"), "tls-server-name": "inner"},
        user={"token": "secret"},
        inside={"namespace": "team"},
    )
    assert connection.server == SERVER
    assert connection.authorities == b"CA"
    assert connection.tls_server_name == "inner"
    assert (connection.namespace, connection.context) == ("team", "one")
    assert await authorization(connection) == "Bearer secret"


async def test_a_name_and_password_become_basic_authorization(tmp_path: Path) -> None:
    connection = load(tmp_path, user={"username": "u", "password": "p"})
    assert await authorization(connection) == f"Basic {encoded(b'u:p')}"


async def test_certificates_come_from_data_or_from_files_beside_the_kubeconfig(
    tmp_path: Path,
) -> None:
    (tmp_path / "pki").mkdir()
    for name in ("ca", "cert", "key"):
        (tmp_path / "pki" / name).write_text(name)
    inline = {"client-certificate-data": encoded(b"cert"), "client-key-data": encoded(b"key")}
    files = {"client-certificate": "pki/cert", "client-key": "pki/key"}
    for user in (inline, files, {**files, **inline}):
        connection = load(tmp_path, cluster={"certificate-authority": "pki/ca"}, user=user)
        certificate = (await connection.credentials.current()).certificate
        assert connection.authorities == b"ca"
        assert certificate is not None
        assert (certificate.chain, certificate.key) == (b"cert", b"key")


async def test_a_token_file_that_rotates_is_read_again(tmp_path: Path) -> None:
    now = 0.0
    token = tmp_path / "token"
    token.write_text("first\n")
    files = Files(token=token, clock=lambda: now)
    assert (await files.current()).authorization == "Bearer first"
    token.write_text("second")
    assert (await files.current()).authorization == "Bearer first"
    now = 61.0
    assert (await files.current()).authorization == "Bearer second"
    token.unlink()
    now = 130.0
    assert (await files.current()).authorization == "Bearer second"
    assert not files.invalidate()
    token.write_text("third")
    assert files.invalidate()
    assert (await files.current()).authorization == "Bearer third"


async def test_an_unchanged_certificate_file_keeps_its_identity(tmp_path: Path) -> None:
    now = 0.0
    (tmp_path / "c").write_text("c")
    files = Files(chain=tmp_path / "c", key=b"k", clock=lambda: now)
    first = (await files.current()).certificate
    now = 100.0
    assert (await files.current()).certificate is first


async def test_a_token_file_beside_a_token_wins(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("rotating")
    connection = load(tmp_path, user={"token": "fixed", "tokenFile": "token"})
    assert await authorization(connection) == "Bearer rotating"


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"k": ["v"]}}
    assert load(tmp_path, user=user).headers == {
        "Impersonate-User": "jane",
        "Impersonate-Uid": "7",
        "Impersonate-Group": ["a", "b"],
        "Impersonate-Extra-k": ["v"],
    }


async def test_several_files_are_merged_and_the_first_of_a_name_wins_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (
        document(current="", user={"token": "first"}),
        document(current="two", user={"token": "second"}, cluster={"tls-server-name": "second"}),
    )
    second["contexts"].append({"name": "two", "context": {"cluster": "c", "user": "other"}})
    second["users"].append({"name": "other", "user": {"tokenFile": "token"}})
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "token").write_text("beside the second file")
    (tmp_path / "a").write_text(json.dumps(first))
    (tmp_path / "sub" / "b").write_text(json.dumps(second))
    (tmp_path / "empty").write_text("")
    names = [tmp_path / "missing", tmp_path / "empty", tmp_path / "a", tmp_path / "sub" / "b"]
    monkeypatch.setenv("KUBECONFIG", ":".join(str(name) for name in names))
    current = client_config.load()
    assert current.context == "two"
    assert current.tls_server_name is None
    assert await authorization(current) == "Bearer beside the second file"
    assert await authorization(client_config.load(context="one")) == "Bearer first"


def test_home_is_the_fallback(tmp_path: Path) -> None:
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    (tmp_path / "home" / ".kube" / "config").write_text(json.dumps(document()))
    assert client_config.load().server == SERVER


@pytest.fixture
def service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    for name, text in (("token", "pod"), ("ca.crt", "CA"), ("namespace", "team\n")):
        (folder / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return folder


async def test_inside_a_pod_the_service_account_is_used(service_account: Path) -> None:
    connection = client_config.in_cluster(service_account)
    assert connection.server == "https://[fd00::1]:443"
    assert (connection.namespace, connection.authorities) == ("team", b"CA")
    assert await authorization(connection) == "Bearer pod"


def test_a_service_account_that_is_not_mounted_is_named(service_account: Path) -> None:
    (service_account / "token").unlink()
    with pytest.raises(ConfigError, match="token: automountServiceAccountToken: cannot be read"):
        client_config.in_cluster(service_account)


def test_outside_a_pod_without_kubeconfig_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="alnair up"):
        client_config.load()
    with pytest.raises(ConfigError, match="is not a pod"):
        client_config.in_cluster(tmp_path)


def test_proxies_come_from_the_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load(tmp_path).proxy is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert load(tmp_path).proxy == "http://proxy:3128"
    assert load(tmp_path, cluster={"server": "https://127.0.0.1:6443"}).proxy is None
    assert load(tmp_path, cluster={"proxy-url": "http://own:1"}).proxy == "http://own:1"
    monkeypatch.setenv("NO_PROXY", "cluster.example")
    assert load(tmp_path).proxy is None


def test_a_server_without_scheme_means_https(tmp_path: Path) -> None:
    assert load(tmp_path, cluster={"server": "host:6443/"}).server == "https://host:6443"


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"current": ""}, "current-context", "is empty; choose one of: one"),
        ({"current": "two"}, "contexts", "there is no context 'two'; there are: one"),
        ({"inside": {"cluster": "x"}}, "contexts[one].context.cluster", "no cluster 'x'"),
        ({"inside": {"user": "x"}}, "contexts[one].context.user", "no user 'x'"),
        ({"cluster": {"server": ""}}, "clusters[c].cluster.server", "is missing"),
        ({"cluster": {"server": "ftp://x"}}, "clusters[c].cluster.server", "no http(s) address"),
        (
            {"cluster": {"certificate-authority-data": "%"}},
            "clusters[c].cluster.certificate-authority-data",
            "is not base64",
        ),
        (
            {"cluster": {"certificate-authority": "ca", "insecure-skip-tls-verify": True}},
            "clusters[c].cluster.insecure-skip-tls-verify",
            "contradicts",
        ),
        (
            {"cluster": {"proxy-url": "socks5://x"}},
            "clusters[c].cluster.proxy-url",
            "only http and https proxies",
        ),
        (
            {"user": {"auth-provider": {"name": "gcp"}}},
            "users[u].user.auth-provider",
            "is not covered",
        ),
        (
            {"user": {"client-certificate-data": "YQ=="}},
            "users[u].user.client-key",
            "is missing beside its partner",
        ),
        (
            {"user": {"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}},
            "users[u].user.exec.apiVersion",
            "is not covered",
        ),
    ],
)
def test_a_bad_kubeconfig_is_refused_with_field_and_fix(
    tmp_path: Path, changes: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, **changes)
    assert caught.value.source == str(tmp_path / "config")
    assert caught.value.field == field
    assert says in caught.value.problem


@pytest.mark.parametrize(
    ("text", "field", "says"),
    [
        ("clusters: {a: b}", "clusters", "Expected `array | null`, got `object`"),
        ("clusters: [{name: c, cluster: {server: 7}}]", "clusters[0].cluster.server", "`str`"),
        ("a: [", "", "is not a YAML file"),
        ("- a", "", "Expected `object | null`"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_its_place(
    tmp_path: Path, text: str, field: str, says: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        merge([path])
    assert (caught.value.source, caught.value.field) == (str(path), field)
    assert says in caught.value.problem


def test_missing_files_are_named_with_the_field_that_names_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: cannot be read: No such file"):
        client_config.load(tmp_path / "nowhere")
    for changes, field in (
        ({"cluster": {"certificate-authority": "gone"}}, "certificate-authority"),
        ({"user": {"tokenFile": "gone"}}, "tokenFile"),
        ({"user": {"client-certificate": "gone", "client-key": "gone"}}, "client-certificate"),
    ):
        with pytest.raises(ConfigError) as caught:
            load(tmp_path, **changes)
        assert caught.value.source == str(tmp_path / "gone")
        assert caught.value.field.endswith(field)


def test_authorities_that_are_no_certificates_are_refused_when_used(tmp_path: Path) -> None:
    for data in (b"not pem", b"\xff"):
        connection = load(tmp_path, cluster={"certificate-authority-data": encoded(data)})
        with pytest.raises(ConfigError, match="holds no usable PEM certificate"):
            connection.tls()
