"""The ledger equals what the fake GPU knows to be used, on every path; without a hook not."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from native import context_paths, graph_paths, vmm_paths
from native.calls import BLOCK, MIB, OUT_OF_MEMORY, SUCCESS, Calls, Out, Var
from native.container import Container
from native.fake import Fake
from native.memory_paths import PATHS, RefusedError
from native.vmm_paths import ARRAY, MAP, exported, mapping, sparse, tiles

assert context_paths
assert graph_paths
assert vmm_paths  # importing them adds their paths

#: What a context costs on the fake H200 (native/fakegpu/profiles/h200).
CONTEXT = 522 * MIB
LIMIT = 8192 * MIB


@contextmanager
def tenant(gpus: int = 1, limit: int = LIMIT, **options: int) -> Iterator[tuple[Fake, Container]]:
    """A machine and a container that may use all of it."""
    with (
        Fake(gpus=gpus) as fake,
        Container(
            *map(fake.uuid, range(gpus)), memory_limit=limit, context_bytes=CONTEXT, **options
        ) as container,
    ):
        for gpu in range(gpus):
            fake.watch(limit, gpu=gpu)
        yield fake, container


def differences(fake: Fake, container: Container) -> list[int]:
    """Bytes that the ledger has more than are used, per GPU."""
    rows = range(fake.gpus)
    return [container.total("held", row) - fake.used("a", row) for row in rows]


def walk(name: str, *bypassed: str) -> list[list[int]]:
    """Runs a path; the differences at each of its steps, beginning and end included."""
    path = PATHS[name]
    with tenant(path.gpus) as (fake, container):
        environment = {**fake.environment(), **container.environment()}
        primary = "primary_context" not in name
        with Calls(environment, device=0 if primary else None) as call:
            if not primary:
                call("cuInit", 0)
            for hook in bypassed:
                assert call.ask("bypass", hook) == "0", f"the fake driver has no {hook}"
            seen = [differences(fake, container)]
            begun = [fake.used("a", gpu) for gpu in range(path.gpus)]
            used = set()
            for _ in path.script(call):
                seen.append(differences(fake, container))
                used.add(sum(fake.used("a", gpu) for gpu in range(path.gpus)))
            assert [fake.used("a", gpu) for gpu in range(path.gpus)] == begun, "the path leaks"
            assert max(used) > sum(begun), "the path takes no memory"
            assert container.total("pending") == 0
            assert not any(any(slot.leaving) for slot in container.slots())
    return seen


@pytest.mark.parametrize("name", PATHS)
def test_the_ledger_is_right_to_the_byte(name: str) -> None:
    seen = walk(name)
    assert all(not any(step) for step in seen), seen


@pytest.mark.parametrize(
    ("name", "hook"), [(name, hook) for name, path in PATHS.items() for hook in path.hooks]
)
def test_without_its_hook_the_ledger_is_wrong(name: str, hook: str) -> None:
    seen = walk(name, hook)
    assert any(any(step) for step in seen), f"{hook} need not be hooked for {name}"


@pytest.mark.parametrize(
    "name", [name for name, path in PATHS.items() if "primary" not in name and path.gpus == 1]
)
def test_a_refusal_is_out_of_memory_and_changes_nothing(name: str) -> None:
    with (
        tenant() as (fake, container),
        Calls({**fake.environment(), **container.environment()}) as call,
    ):
        container.change(memory_limit=CONTEXT)
        with pytest.raises(RefusedError):
            list(PATHS[name].script(call))
        assert fake.used() == CONTEXT
        assert differences(fake, container) == [0]
        assert container.total("pending") == 0
        assert container.total("refused") >= 1


def test_what_only_a_descriptor_holds_is_refused_to_others_until_it_is_closed() -> None:
    with (
        tenant() as (fake, container),
        Calls({**fake.environment(), **container.environment()}) as call,
    ):
        container.change(memory_limit=CONTEXT + BLOCK)
        exported(call, "f")
        assert call("cuMemAlloc_v2", Out("a"), BLOCK) == OUT_OF_MEMORY
        call.ask("close", Var("f"))
        assert call("cuMemAlloc_v2", Out("a"), BLOCK) == SUCCESS
        assert differences(fake, container) == [0]


@pytest.mark.parametrize("end", ["close", "kill"])
def test_bindings_and_descriptors_end_with_the_process_and_are_not_its_childs(end: str) -> None:
    with tenant() as (fake, container):
        with Calls({**fake.environment(), **container.environment()}) as call:
            array = sparse(call, "h")
            tile = mapping(ARRAY, array, MAP, call.get("h"))
            assert tiles(call, "cuMemMapArrayAsync", tile) == SUCCESS
            assert call("cuMemRelease", Var("h")) == SUCCESS
            exported(call, "f")
            assert int(call.ask("fork")) > 0
            call.ask("close", Var("f"))
            assert container.total("held") == fake.used() == CONTEXT + 2 * BLOCK
            getattr(call, end)()
        with Calls({**fake.environment(), **container.environment()}):
            assert differences(fake, container) == [0]
            assert fake.used() == CONTEXT
