"""Which cluster a command means, by what it is told and by what is there."""

import socket
from pathlib import Path

import pytest

from alnair.cli.cluster_selection import ClusterOptions, ask, local_name
from alnair.cli.scheduler.override_options import OverrideOptions
from alnair.configuration.scheduler_file import Configuration
from alnair.kube import transport
from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.errors import ConfigError, ConnectionFailed
from alnair.kube.resources import PODS

KEYWORDS = Client.__init__.__kwdefaults__ or {}
KUBECONFIG = """
current-context: it
contexts: [{{name: it, context: {{cluster: it}}}}]
clusters: [{{name: it, cluster: {{server: "https://{name}"}}}}]
"""


def write(path: Path, name: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(KUBECONFIG.format(name=name))
    return path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any cluster."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ALNAIR_STATE", str(tmp_path / "clusters"))
    return tmp_path


def test_each_place_comes_after_those_that_are_nearer_to_what_was_said(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="start a local cluster with 'alnair up'"):
        ClusterOptions().connection()
    write(home / ".kube" / "config", "home")
    assert ClusterOptions().connection().server == "https://home"
    write(home / "clusters" / "alnair" / "admin.kubeconfig", "local")
    assert ClusterOptions().connection().server == "https://local"
    monkeypatch.setenv("KUBECONFIG", str(write(home / "environment", "environment")))
    assert ClusterOptions().connection().server == "https://environment"
    assert ClusterOptions(name="alnair").connection().server == "https://local"
    given = write(home / "given", "given")
    assert ClusterOptions(kubeconfig=given).connection().server == "https://given"


def test_a_local_cluster_that_is_named_and_not_there_is_told_with_the_fix(home: Path) -> None:
    write(home / ".kube" / "config", "home")
    with pytest.raises(ConfigError, match="start it with 'alnair up --name two'"):
        ClusterOptions(name="two").connection()


def test_local_clusters_that_are_there_are_named(home: Path) -> None:
    for name in ("one", "three"):
        write(home / "clusters" / name / "admin.kubeconfig", name)
    with pytest.raises(ConfigError, match="there are one, three; start it with"):
        ClusterOptions(name="two").connection()
    with pytest.raises(ConfigError, match="--name takes the local clusters one, three"):
        ClusterOptions().connection()


def test_the_scheduler_finds_the_running_local_cluster_unless_its_file_names_another(
    home: Path,
) -> None:
    write(home / "clusters" / "alnair" / "admin.kubeconfig", "local")
    write(home / "clusters" / "two" / "admin.kubeconfig", "two")
    given = write(home / "given", "given")
    nothing, named = Configuration(), OverrideOptions(kubeconfig=given)
    assert OverrideOptions().connection(nothing).server == "https://local"
    assert OverrideOptions(name="two").connection(nothing).server == "https://two"
    in_file = named.applied_to(nothing)
    assert OverrideOptions().connection(in_file).server == "https://given"


def test_a_local_cluster_is_known_by_its_name_or_by_its_kubeconfig(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert local_name(None, None, None) == "alnair", "to say how one is started"
    other = write(home / ".kube" / "config", "home")
    assert local_name(None, None, None) is None
    write(home / "clusters" / "alnair" / "admin.kubeconfig", "local")
    assert local_name(None, None, None) == "alnair"
    assert local_name("two", None, None) == "two"
    assert local_name(None, other, None) is None
    assert local_name(None, None, "prod") is None
    monkeypatch.setenv("KUBECONFIG", str(home / "clusters" / "two" / "admin.kubeconfig"))
    assert local_name(None, None, None) == "two"
    monkeypatch.setenv("KUBECONFIG", str(other))
    assert local_name(None, None, None) is None
    with pytest.raises(ConfigError, match="both say which cluster"):
        local_name("two", other, None)


def test_one_line_says_that_the_api_server_lets_one_wait(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(transport, "OVERDUE", 0.0)

    async def two(client: Client) -> None:
        for _ in range(2):
            with pytest.raises(ConnectionFailed):
                await client.get(PODS, "a", "b")

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr(Client.__init__, "__kwdefaults__", KEYWORDS | {"timeout": 0.1})
        ask(Connection(url), "test", two)
        assert capsys.readouterr().err == (
            f"waiting for the API server: GET {url}/api/v1/namespaces/b/pods/a\n"
        )
        ask(Connection(url), "test", two, says_if_slow=False)
        assert capsys.readouterr().err == ""
