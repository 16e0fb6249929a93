"""What lives in a node's namespaces is found without a mark, and waited for."""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from alnair.local.errors import LocalClusterError
from alnair.local.real_node import inhabitants

UNSHARE = ("unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces")


@pytest.fixture
def node() -> Iterator[subprocess.Popen[bytes]]:
    """A process with namespaces of its own, whose child is PID 1 in them."""
    command = [*UNSHARE, "--kill-child=SIGKILL", "sleep", "60"]
    with subprocess.Popen(command) as outer:
        # Before it is `sleep`, it has not yet asked to end with its parent.
        while [_name(child) for child in _children(outer.pid)] != ["sleep"]:
            assert outer.poll() is None, "namespaces can be made"
            time.sleep(0.01)
        yield outer
        outer.kill()


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


async def test_all_who_share_a_namespace_with_pid_1_are_found_until_they_are_gone(
    node: subprocess.Popen[bytes],
) -> None:
    first = _children(node.pid)
    its_own = inhabitants.of_node(first)
    assert len(its_own.names) == 5
    assert {one.pid for one in inhabitants.living(its_own)} == {node.pid, *first}
    node.kill()
    await inhabitants.gone(its_own)
    assert inhabitants.living(its_own) == []


async def test_one_who_stays_is_named(node: subprocess.Popen[bytes]) -> None:
    with pytest.raises(LocalClusterError, match=rf"\b{node.pid}\b.*end them"):
        await inhabitants.gone(inhabitants.of_node(_children(node.pid)), seconds=0.0)


def test_who_began_later_lives_in_anothers_namespaces_of_the_same_numbers(
    node: subprocess.Popen[bytes],
) -> None:
    first = _children(node.pid)
    its_own = inhabitants.of_node(first)
    time.sleep(0.02)
    with subprocess.Popen(["nsenter", f"--target={first[0]}", "--uts", "sleep", "60"]) as later:
        while later.pid not in {p.pid for p in inhabitants.living(inhabitants.of_node(first))}:
            time.sleep(0.01)
        assert later.pid not in {process.pid for process in inhabitants.living(its_own)}
        node.kill()
        asyncio.run(inhabitants.gone(its_own))
        later.kill()


def test_only_pid_1_tells_a_nodes_namespaces(node: subprocess.Popen[bytes]) -> None:
    none = inhabitants.of_node([node.pid, os.getpid()])
    assert none.names == frozenset()
    assert inhabitants.living(none) == []
