"""`make programs` installs what of Debian is missing, where that is allowed, or says what not."""

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def debian() -> dict[str, Any]:
    """The script's names."""
    return runpy.run_path(str(ROOT / "requirements" / "debian.py"))


def lacking(*missing: str) -> Callable[[str], str | None]:
    """Finds all programs but these."""
    return lambda name: None if name in missing else f"/usr/bin/{name}"


class Apt:
    """Takes note of what is run; what has one of these words fails, with what is said."""

    def __init__(self, **fails: str) -> None:
        self.fails = fails
        self.ran: list[str] = []

    def __call__(self, command: Sequence[str], seconds: float | None) -> str:
        words = [one for one in command if not one.startswith("-") and ":" not in one]
        verb = " ".join(word for word in words if "=" not in word)
        fetches = "--download-only" in command
        self.ran.append(f"fetch {words[-1]}" if fetches else verb)
        return next((said for word, said in self.fails.items() if word in self.ran[-1]), "")


@pytest.mark.parametrize(
    ("missing", "packages"),
    [
        ((), []),
        (("nft", "ip"), ["iproute2", "nftables"]),
        (("unshare", "nsenter", "promtool"), ["prometheus", "util-linux"]),
        (("cc",), ["gcc", "libc6-dev"]),
        (("buildah",), ["buildah"]),
        (("pg_ctlcluster",), ["postgresql"]),
    ],
)
def test_the_packages_of_what_is_missing_are_wanted(
    debian: dict[str, Any],
    missing: tuple[str, ...],
    packages: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(debian["of_images"], "KEYRING", str(tmp_path))
    runc = tmp_path / "runc"
    runc.write_text("#!/bin/sh\necho runc version 1.4.3\n")
    runc.chmod(0o755)
    environment = {"KUBEBUILDER_ASSETS": str(tmp_path), "ALNAIR_CACHE": str(tmp_path)}
    assert debian["wanted"](environment, lacking(*missing)) == packages


@pytest.mark.parametrize(
    ("environment", "user", "missing", "refuses"),
    [
        ({}, 0, (), False),
        ({"ALNAIR_APT": "no"}, 0, (), True),
        ({}, 1000, (), True),
        ({}, 0, ("apt-get",), True),
    ],
)
def test_only_root_with_apt_installs_and_nobody_who_was_told_not_to(
    debian: dict[str, Any],
    environment: dict[str, str],
    user: int,
    missing: tuple[str, ...],
    refuses: bool,
) -> None:
    assert debian["refuses"](environment, user, lacking(*missing)) is refuses


def test_packages_are_fetched_and_installed_and_no_daemon_of_theirs_stays(
    debian: dict[str, Any], tmp_path: Path
) -> None:
    apt = Apt()
    assert debian["install"](["nftables", "prometheus"], apt, tmp_path / "policy") == {}
    assert apt.ran == [
        *("fetch nftables", "apt-get install nftables"),
        *("fetch prometheus", "apt-get install prometheus"),
        *("service prometheus stop", "update-rc.d prometheus disable"),
    ]
    assert not (tmp_path / "policy").exists()


def test_the_lists_of_packages_are_fetched_once_where_one_is_not_known(
    debian: dict[str, Any], tmp_path: Path
) -> None:
    apt = Apt(prometheus="E: Unable to locate package prometheus")
    failed = debian["install"](["prometheus", "nftables"], apt, tmp_path / "policy")
    assert failed == {"prometheus": "E: Unable to locate package prometheus"}
    assert apt.ran == [
        *("fetch prometheus", "apt-get update", "fetch prometheus"),
        *("fetch nftables", "apt-get install nftables"),
    ]


def test_without_a_network_it_is_given_up_at_once(debian: dict[str, Any], tmp_path: Path) -> None:
    apt = Apt(fetch="E: no such package", update="E: no network")
    failed = debian["install"](["make", "nftables"], apt, tmp_path / "policy")
    assert failed == {"make": "E: no network"}
    assert apt.ran == ["fetch make", "apt-get update"]


@pytest.mark.parametrize("own", ["#!/bin/sh\nexit 0\n", None])
def test_a_policy_of_the_machine_stays_and_ours_goes_although_it_fails(
    debian: dict[str, Any], tmp_path: Path, own: str | None
) -> None:
    policy = tmp_path / "policy-rc.d"
    if own:
        policy.write_text(own)

    def while_ours_forbids() -> str:
        with debian["no_daemons"](policy):
            text = policy.read_text()
            raise OSError(text)

    with pytest.raises(OSError, match="exit 0" if own else "exit 101"):
        while_ours_forbids()
    assert (policy.read_text() if policy.exists() else None) == own
    # One that a killed run has left is known again.
    if own is None:
        policy.write_text(debian["_NO_DAEMON"])
        with debian["no_daemons"](policy):
            assert policy.exists()
        assert not policy.exists()


def test_a_command_that_fails_is_told_by_its_last_line(debian: dict[str, Any]) -> None:
    assert debian["run"](["true"], 10) == ""
    assert debian["run"](["sh", "-c", "echo E: one; echo E: two; exit 100"], 10) == "E: two"
    assert "no-such-program" in debian["run"](["no-such-program"], 10)
    assert debian["run"](["sleep", "60"], 0.1) == "no answer within 0.1 s"
