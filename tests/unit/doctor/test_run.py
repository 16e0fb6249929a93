"""All checks are made, whatever one of them meets; and each is told in the reference."""

from typing import Any

from alnair.doctor import registry, run
from alnair.doctor.finding import Finding, Level, error, ok
from alnair.kube.errors import Forbidden


def silent(what: str, done: int, total: int) -> None:
    """Nobody looks."""


async def test_a_refused_check_is_a_warning_and_the_next_is_made() -> None:
    async def refused(look: Any) -> list[Finding]:
        raise Forbidden(403, "Forbidden", "you may not")

    async def well(look: Any) -> list[Finding]:
        return [ok("all right")]

    checks = {"first": refused, "second": well}
    found = [one async for one in run.of_cluster(None, silent, checks)]  # type: ignore[arg-type]
    assert [(one.check, one.finding.level.value) for one in found] == [
        ("first", "warning"),
        ("second", "ok"),
    ]
    assert found[0].finding.what == "could not be asked: you may not"
    assert run.is_well(found)


async def test_a_file_of_the_node_that_cannot_be_read_is_an_error_of_its_check() -> None:
    def unreadable(look: Any) -> list[Finding]:
        raise PermissionError(13, "Permission denied", "/proc/self/mounts")

    checks = {"first": unreadable, "second": lambda look: [error("broken")]}
    found = [one async for one in run.of_node(None, silent, checks)]
    assert [one.finding.level for one in found] == [Level.ERROR, Level.ERROR]
    assert "Permission denied" in found[0].finding.what
    assert not run.is_well(found)


def test_every_check_says_in_a_sentence_what_must_hold() -> None:
    every = {**registry.CLUSTER, **registry.node_checks()}
    assert len(every) == 20
    for name, check in every.items():
        assert registry.explanation(check).endswith("."), name
        assert "\n" not in registry.explanation(check), name
