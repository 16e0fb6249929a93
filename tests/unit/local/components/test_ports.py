"""Ports are kept, chosen clear of others, and refused before anything starts."""

import socket
from pathlib import Path

import pytest

from alnair.local.components import ports
from alnair.local.errors import LocalClusterError

FOLDER = Path("/clusters/one")
TWO = ["kube-apiserver", "kwok"]


def choose(
    remembered: dict[str, int] | None = None,
    *,
    used: frozenset[int] = frozenset(),
    api_port: int | None = None,
    ours: dict[str, int] | None = None,
    taken: frozenset[int] = frozenset(),
) -> dict[str, int]:
    return ports.choose(
        FOLDER,
        TWO,
        remembered or {},
        api_port=api_port,
        ours=ours or {},
        taken=taken,
        free=lambda port: port not in used,
        patience=0,
    )


def test_a_place_has_the_same_ports_every_time() -> None:
    assert choose() == choose()
    assert len(set(choose().values())) == 2


def test_ports_that_are_used_or_belong_to_other_clusters_are_passed_over() -> None:
    first = frozenset(choose().values())
    assert first.isdisjoint(choose(used=first).values())
    assert first.isdisjoint(choose(taken=first).values())


def test_remembered_ports_are_kept() -> None:
    remembered = {"kube-apiserver": 20001, "kwok": 20002}
    assert choose(remembered) == remembered


def test_the_port_of_a_running_component_is_kept_even_if_it_was_forgotten() -> None:
    ours = {"kube-apiserver": 20001, "kwok": 20002}
    assert choose(used=frozenset(ours.values()), ours=ours) == ours


def test_an_inner_port_in_use_is_replaced() -> None:
    remembered = {"kube-apiserver": 20001, "kwok": 20002}
    found = choose(remembered, used=frozenset({20002}))
    assert found["kube-apiserver"] == 20001
    assert found["kwok"] != 20002


def test_the_api_servers_port_in_use_is_told_with_the_fix() -> None:
    with pytest.raises(LocalClusterError, match=r"port 20001, which .* before, is in use.*--port"):
        choose({"kube-apiserver": 20001}, used=frozenset({20001}))
    with pytest.raises(LocalClusterError, match=r"port 6443 is in use.*--port"):
        choose({"kube-apiserver": 20001}, used=frozenset({6443}), api_port=6443)


def test_a_port_that_a_killed_process_still_holds_is_waited_for() -> None:
    answers = iter([False, False, True])
    found = ports.choose(
        FOLDER,
        ["kube-apiserver"],
        {"kube-apiserver": 20001},
        api_port=None,
        ours={},
        free=lambda _: next(answers),
    )
    assert found == {"kube-apiserver": 20001}


def test_an_api_server_that_began_to_listen_meanwhile_keeps_its_port() -> None:
    found = ports.choose(
        FOLDER,
        ["kube-apiserver"],
        {"kube-apiserver": 20001},
        api_port=None,
        ours={},
        free=lambda _: False,
        listens=lambda port: port == 20001,
        patience=0,
    )
    assert found == {"kube-apiserver": 20001}


def test_a_chosen_port_replaces_the_remembered_and_the_running_one() -> None:
    running = {"kube-apiserver": 20001}
    found = choose(running, used=frozenset({20001}), ours=running, api_port=6443)
    assert found["kube-apiserver"] == 6443


def test_no_free_port_at_all_is_told() -> None:
    with pytest.raises(LocalClusterError, match=r"no port between .* is free"):
        choose(used=frozenset(range(65536)))


def test_a_listening_socket_is_seen_and_its_owner_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
        with pytest.raises(LocalClusterError, match=r"in use by .+ \(process \d+\)"):
            ports.choose(FOLDER, ["kube-apiserver"], {}, api_port=port, ours={}, patience=0)
    assert ports.is_free(port)
