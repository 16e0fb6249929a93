"""A machine on which no real node can run is told so, with what to do, before anything changes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from alnair.local.errors import InvalidArgumentError
from alnair.local.layout import Layout
from alnair.local.real_node import requirements

FOLDER = Path("/home/me/clusters")


def lacking(*missing: str) -> Callable[[str], str | None]:
    """Finds all programs but these."""
    return lambda name: None if name in missing else f"/usr/bin/{name}"


def problem(**given: object) -> str | None:
    usual = {"builds": False, "system": "Linux", "user": 0, "which": lacking()}
    return requirements.problem([FOLDER], **(usual | given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"system": "Darwin"}, "a real node needs Linux, this is Darwin: leave out --real-node"),
        (
            {"user": 1000},
            "a real node needs root (containers, namespaces): run the command with sudo",
        ),
        (
            {"which": lacking("nft", "ip")},
            (
                "a real node needs ip, nft, not found here:"
                " install them (Debian, Ubuntu: apt-get install iproute2 nftables)"
            ),
        ),
        (
            {"builds": True, "which": lacking("pkg-config"), "exists": lambda path: False},
            (
                "a real node needs pkg-config, seccomp.h, not found here:"
                " install them (Debian, Ubuntu: apt-get install libseccomp-dev pkg-config)"
            ),
        ),
    ],
)
def test_what_is_missing_is_told_with_its_package(given: dict[str, object], said: str) -> None:
    assert problem(**given) == said


def test_what_only_builds_need_is_not_asked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "_trial", lambda: None)
    monkeypatch.setattr(requirements.cgroups, "hierarchies", lambda: [Path("/")])
    assert problem(which=lacking("pkg-config"), exists=lambda path: False) is None


@pytest.mark.parametrize("folder", ["/var/lib/alnair", "/run/clusters"])
def test_a_folder_that_the_node_would_not_see_is_told(folder: str) -> None:
    said = requirements.problem([Path(folder)], builds=False, system="Linux", user=0)
    assert said is not None
    assert f"{folder} lies in" in said
    assert "set ALNAIR_STATE" in said


def test_a_cluster_that_cannot_keep_nodes_has_no_real_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="name it in --components too"):
        requirements.check(Layout(tmp_path, "one"), {}, ["etcd", "kube-apiserver"])
