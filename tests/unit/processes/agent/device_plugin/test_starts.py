"""Containers start with the GPUs that they are assigned, or are told why not."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from alnair.model import names
from alnair.model.gpu_demand import gpu_demand
from alnair.node.gpu_looks import GpuLook
from alnair.node.kubelet.cdi import KIND
from alnair.node.kubelet.plugin_server import StartRefusedError
from alnair.node.nvml import NvmlGpu
from alnair.node.readings.values import Usage
from alnair.node.vgpu.containers.container_slices import Share
from alnair.processes.agent.device_plugin import starts
from kit.kubelet_sockets import answer
from kit.node_state import asks, pod_on_node
from kit.plugin_node import GPUS, Node, on_gpu, part, whole_part

HALF = asks(memory=5_000, compute=50)
A, B, C = (on_gpu(pod_on_node(name, HALF), main=[part(0)]) for name in "abc")
WHOLE = on_gpu(pod_on_node("w", asks(whole=1)), main=[whole_part(1)])
NONE = pod_on_node("n", HALF)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start is held for one look only."""
    monkeypatch.setattr(starts, "_HOLD", -1.0)


async def test_a_slice_starts_on_the_gpu_of_its_assignment(node: Node) -> None:
    node.add(A)
    await node.start(node.give(A, "slot-199"))
    slices = node.server.containers["uid-a-main"].assignment
    assert (slices.who.pod, slices.pod.name, slices.pod.container) == ("uid-a", "a", "main")
    (share,) = slices.shares
    assert (share.uuid, share.memory_mib, share.compute_percent, share.soft) == (
        GPUS[0].uuid,
        5_000,
        50,
        False,
    )
    assert node.files == {"a-main": (part(0),)}
    assert not node.refused


async def test_a_whole_gpu_is_the_assigned_one_whatever_the_kubelet_chose(node: Node) -> None:
    node.add(WHOLE)
    await node.start(node.give(WHOLE, GPUS[0].uuid, resource=names.GPU))
    assert node.files == {"w-main": (whole_part(1),)}
    assert not node.server.containers
    text = next((node.kubelet.folder / "cdi").iterdir()).read_text()
    assert f'"hostPath":"{GPUS[1].uuid}"' in text


async def test_whole_gpus_have_a_library_that_counts_where_the_pod_asks_for_it(node: Node) -> None:
    counted = replace(WHOLE, counts_calls=True)
    node.add(counted)
    await node.start(node.give(counted, GPUS[0].uuid, resource=names.GPU))
    ((name, container),) = node.server.containers.items()
    (share,) = container.assignment.shares
    assert share == Share(GPUS[1].uuid)  # nothing is limited
    text = next((node.kubelet.folder / "cdi").iterdir()).read_text()
    assert f'"hostPath":"{GPUS[1].uuid}/{name}"' in text
    node.remove(counted)
    node.starts.forget(counted.uid)
    assert not node.server.containers


async def test_a_container_that_restarts_starts_with_the_same(node: Node) -> None:
    node.add(A)
    held = node.give(A, "slot-0")
    for _ in range(3):
        await node.start(held)
    assert node.files == {"a-main": (part(0),)}
    assert list(node.server.containers) == ["uid-a-main"]


async def test_a_device_that_the_kubelet_named_anew_replaces_the_one_before(node: Node) -> None:
    node.add(A)
    await node.start(node.give(A, "slot-0"))
    node.kubelet.take(A.uid)
    node.kubelet.give(A.uid, "main", names.VGPU, {-1: ["slot-1"]}, answer(f"{KIND}=again"))
    await node.starts.start(names.VGPU, frozenset({"slot-1"}))
    assert node.files == {"again": (part(0),)}


async def test_a_pod_that_nobody_placed_is_given_a_gpu_and_told(node: Node) -> None:
    node.add(A, NONE)
    await node.start(node.give(A, "slot-0"))
    await node.start(node.give(NONE, "slot-1"))
    (chosen,) = node.written
    assert chosen.containers == {"main": [part(0)]}, "the rest of the GPU that fits best"
    assert node.pods.by_uid[NONE.uid].assignment == chosen
    assert node.files == {"a-main": (part(0),), "n-main": (part(0),)}


async def test_a_choice_that_cannot_be_written_is_taken_back(node: Node, impatient: None) -> None:
    node.add(NONE)
    node.write_problem = "forbidden"
    with pytest.raises(StartRefusedError, match="the choice of a GPU cannot be written: forbidden"):
        await node.start(node.give(NONE, "slot-0"))
    assert node.pods.by_uid[NONE.uid].assignment is None
    assert not node.files


async def test_a_start_that_the_kubelet_gives_up_takes_its_choice_back(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.add(NONE)
    writing = asyncio.Event()

    async def write(*_: object) -> str:
        writing.set()
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(node, "write", write)
    task = asyncio.create_task(node.start(node.give(NONE, "slot-0")))
    await writing.wait()
    assert node.pods.by_uid[NONE.uid].assignment is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert node.pods.by_uid[NONE.uid].assignment is None


async def test_of_two_to_whom_the_kubelet_gave_the_same_slot_both_start(node: Node) -> None:
    pod = on_gpu(pod_on_node("d", asks(memory=5_000, compute=50)), main=[part(1)])
    node.add(A, pod)
    first, second = node.give(A, "slot-0"), node.give(pod, "slot-0")
    await node.start(first)
    await node.start(second)
    await node.start(first)  # after a restart of its container
    assert node.files == {"a-main": (part(0),), "d-main": (part(1),)}
    assert not node.refused


async def test_of_two_with_the_same_slot_the_one_without_room_is_replaced(node: Node) -> None:
    node.add(A, B, C)
    await node.start(node.give(A, "slot-0"))
    await node.start(node.give(B, "slot-1"))
    with pytest.raises(StartRefusedError, match="others hold"):
        await node.start(node.give(C, "slot-1"))
    assert set(node.files) == {"a-main", "b-main"}
    assert [(name, to_replace) for name, _, to_replace in node.refused] == [("c", True)]


async def test_two_that_nobody_placed_do_not_get_the_same_room(node: Node) -> None:
    most = asks(memory=9_000, compute=90)
    pods = [pod_on_node(name, most) for name in "xy"]
    node.add(*pods)
    held = [node.give(pod, f"slot-{i}") for i, pod in enumerate(pods)]
    await asyncio.gather(*map(node.start, held))
    assert {given.containers["main"][0].index for given in node.written} == {0, 1}


async def test_of_two_that_start_at_once_for_the_last_room_one_is_replaced(node: Node) -> None:
    node.add(A, B, C)
    held = [node.give(pod, f"slot-{i}") for i, pod in enumerate((A, B, C))]
    done = await asyncio.gather(*map(node.start, held), return_exceptions=True)
    refused = [one for one in done if one is not None]
    assert len(refused) == 1
    assert isinstance(refused[0], StartRefusedError)
    assert len(node.files) == len(node.server.containers) == 2
    ((name, message, to_replace),) = node.refused
    assert (f"{name}-main" in node.files, to_replace) == (False, True)
    assert "others hold" in message


async def test_what_is_leaving_is_waited_for(node: Node) -> None:
    node.add(A, B, C)
    await node.start(node.give(A, "slot-0"))
    await node.start(node.give(B, "slot-1"))
    node.add(replace(A, is_leaving=True))
    task = asyncio.create_task(node.start(node.give(C, "slot-2")))
    node.remove(A)
    assert not task.done()
    node.starts.forget(A.uid)  # the last of its processes has ended
    await task
    assert node.files == {"b-main": (part(0),), "c-main": (part(0),)}


async def test_a_pod_that_the_api_server_tells_of_late_is_waited_for(node: Node) -> None:
    asked = asyncio.Event()
    changed = node.pods.changed

    async def changed_soon(seconds: float) -> None:
        asked.set()
        await changed(seconds)

    node.pods.changed = changed_soon  # type: ignore[method-assign]
    task = asyncio.create_task(node.start(node.give(A, "slot-0")))
    await asked.wait()
    node.add(A)
    await task
    assert node.files == {"a-main": (part(0),)}


async def test_a_pod_that_waits_too_long_is_replaced(
    node: Node, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.add(A)
    held = node.give(A, "slot-0")
    node.kubelet.unlisted.add("main")
    with pytest.raises(StartRefusedError, match="does not list container 'main'"):
        await node.start(held)
    assert not node.refused
    monkeypatch.setattr(starts, "_REPLACE_AFTER", -2.0)
    with pytest.raises(StartRefusedError):
        await node.start(held)
    assert [(name, to_replace) for name, _, to_replace in node.refused] == [("a", True)]
    node.kubelet.unlisted.clear()
    await node.start(held)
    assert not node.starts._waiting


async def test_ids_of_nobody_are_refused_after_a_while(node: Node, impatient: None) -> None:
    with pytest.raises(StartRefusedError, match="does not say whose"):
        await node.starts.start(names.VGPU, frozenset({"slot-9"}))
    assert not node.refused


async def test_a_damaged_checkpoint_is_waited_for(node: Node, impatient: None) -> None:
    node.add(A)
    held = node.give(A, "slot-0")
    path = node.kubelet.plugins / "kubelet_internal_checkpoint"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StartRefusedError, match="kubelet_internal_checkpoint cannot be read"):
        await node.start(held)
    node.kubelet.write_checkpoint()
    await node.start(held)


async def test_a_slot_without_memory_is_refused_for_good(node: Node) -> None:
    pod = pod_on_node("bare")
    node.add(pod)
    with pytest.raises(StartRefusedError, match="has container 'main' with alnair/vgpu, but"):
        await node.start(node.give(pod, "slot-0"))
    assert [(name, to_replace) for name, _, to_replace in node.refused] == [("bare", False)]


async def test_an_assignment_that_does_not_fit_is_refused_and_replaced(node: Node) -> None:
    pod = on_gpu(pod_on_node("odd", HALF), main=[part(0, memory=1)])
    node.add(pod)
    with pytest.raises(StartRefusedError, match="cannot start as annotation"):
        await node.start(node.give(pod, "slot-0"))
    assert [(name, to_replace) for name, _, to_replace in node.refused] == [("odd", True)]


async def test_what_the_node_lacks_is_waited_for(node: Node, impatient: None) -> None:
    node.add(A)
    node.lacking = "there is no MPS daemon"
    held = node.give(A, "slot-0")
    with pytest.raises(StartRefusedError, match="there is no MPS daemon"):
        await node.start(held)
    node.lacking = ""
    await node.start(held)


async def test_a_slice_that_cannot_be_prepared_is_refused(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.add(A)
    held = node.give(A, "slot-0")
    monkeypatch.setattr(node.server, "prepare", lambda _: "no room in the journal")
    with pytest.raises(StartRefusedError, match="cannot be prepared: no room in the journal"):
        await node.start(held)
    assert (node.files, node.starts.started) == ({}, {})
    monkeypatch.undo()
    await node.start(held)


async def test_what_failed_half_way_is_taken_back_with_its_pod(node: Node) -> None:
    node.add(A)
    held = node.give(A, "slot-0")
    node.edits_error = "libcuda.so.1 is not there"
    with pytest.raises(StartRefusedError, match="the start cannot be prepared: libcuda"):
        await node.start(held)
    assert not node.starts.started
    node.starts.forget(A.uid)
    assert not node.server.containers


async def test_a_file_that_cannot_be_written_is_said_and_written_later(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.add(A)
    held = node.give(A, "slot-0")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StartRefusedError, match="No space left"):
        await node.start(held)
    monkeypatch.undo()
    assert (node.files, node.starts.started) == ({}, {})
    await node.start(held)
    assert node.files == {"a-main": (part(0),)}


async def test_a_pod_that_ends_during_its_start_does_not_start(node: Node) -> None:
    node.kubelet.unlisted.add("main")
    node.add(A)
    task = asyncio.create_task(node.start(node.give(A, "slot-0")))
    node.add(replace(A, is_ended=True))
    node.kubelet.unlisted.clear()
    with pytest.raises(StartRefusedError, match="has ended"):
        await task
    assert [to_replace for _, _, to_replace in node.refused] == [False]
    assert (node.files, dict(node.server.containers)) == ({}, {})


async def test_the_next_agent_knows_what_was_started(node: Node) -> None:
    node.add(A, B, C, WHOLE)
    held = [node.give(pod, f"slot-{i}") for i, pod in enumerate((A, B, C))]
    await node.start(held[0])
    await node.start(held[1])
    await node.start(node.give(WHOLE, GPUS[1].uuid, resource=names.GPU))
    before = node.starts.started
    node.starts = node.agent()
    node.starts.take_over()
    assert node.starts.started == before
    with pytest.raises(StartRefusedError, match="others hold 10000"):
        await node.start(held[2])


async def test_what_ended_while_no_agent_ran_is_taken_back(node: Node) -> None:
    node.add(A, B, WHOLE)
    for i, pod in enumerate((A, B)):
        await node.start(node.give(pod, f"slot-{i}"))
    await node.start(node.give(WHOLE, GPUS[1].uuid, resource=names.GPU))
    node.starts = node.agent()
    node.starts.take_over()
    node.remove(B)
    node.add(replace(WHOLE, is_ended=True))
    gone = node.starts.gone(node.pods.by_uid)
    assert gone == {B.uid, WHOLE.uid}
    for uid in gone:
        node.starts.forget(uid)
    assert list(node.files) == ["a-main"]
    assert list(node.server.containers) == ["uid-a-main"]
    # Slices of which no file tells, as when the folder of CDI was emptied.
    node.remove(A)
    node.starts.started.clear()
    assert node.starts.gone(node.pods.by_uid) == {A.uid}


async def test_damaged_slices_are_taken_back_too(node: Node) -> None:
    node.add(A)
    await node.start(node.give(A, "slot-0"))
    container = node.server.containers.pop("uid-a-main")
    container.close()
    node.server.damaged["uid-a-main"] = "it is damaged"
    node.server._unserved["uid-a-main"] = container.entry
    node.starts.forget(A.uid)
    assert not node.server.damaged


async def test_a_pods_replacement_is_asked_for_once(node: Node) -> None:
    odd = on_gpu(pod_on_node("odd", asks(memory=5_000, compute=50)), main=[part(1, memory=1)])
    node.add(odd)
    held = node.give(odd, "slot-0")
    for _ in range(2):
        with pytest.raises(StartRefusedError, match="cannot start as annotation"):
            await node.start(held)
    assert [to_replace for _, _, to_replace in node.refused] == [True, False]
    node.starts.forget(odd.uid)
    assert not node.starts._replaced


async def test_an_init_containers_slots_come_again(node: Node) -> None:
    pod = on_gpu(
        pod_on_node("i", asks("prepare", memory=5_000, init=True), HALF),
        prepare=[part(1, compute=0)],
        main=[part(1)],
    )
    node.add(pod)
    first = answer(f"{KIND}=i-prepare")
    node.kubelet.give(pod.uid, "prepare", names.VGPU, {-1: ["slot-0"]}, first, init=True)
    held = node.give(pod, "slot-0")
    await node.start(held)
    assert node.files == {"i-main": (part(1),), "i-prepare": (part(1, compute=0),)}
    assert sorted(node.server.containers) == ["uid-i-main", "uid-i-prepare"]


async def test_no_slice_starts_on_a_gpu_that_another_plugin_gave(node: Node) -> None:
    theirs = pod_on_node("theirs", asks(whole=1))
    node.add(theirs, A, NONE)
    node.kubelet.give(theirs.uid, "main", names.GPU, {0: [GPUS[0].uuid]})
    assert node.starts.others() == {theirs.uid: {"main": (whole_part(0),)}}
    with pytest.raises(StartRefusedError, match="is another pod's, whole"):
        await node.start(node.give(A, "slot-0"))
    assert [(name, to_replace) for name, _, to_replace in node.refused] == [("a", True)]
    await node.start(node.give(NONE, "slot-1"))
    assert node.files == {"n-main": (part(1),)}, "chosen beside it"
    node.kubelet.take(theirs.uid)
    node.kubelet.take(A.uid)
    assert not node.starts.others()
    await node.start(node.give(A, "slot-2"))


async def test_what_other_plugins_gave_is_unknown_while_the_checkpoint_is_damaged(
    node: Node,
) -> None:
    theirs = pod_on_node("theirs", asks(whole=1))
    node.add(theirs)
    node.kubelet.give(theirs.uid, "main", names.GPU, {0: [GPUS[1].uuid]})
    assert node.starts.others() == {theirs.uid: {"main": (whole_part(1),)}}
    (node.kubelet.plugins / "kubelet_internal_checkpoint").write_bytes(b"")
    assert node.starts.others() is None


async def test_a_container_that_another_plugin_gave_its_gpu_starts_again_with_that(
    node: Node,
) -> None:
    theirs = pod_on_node("theirs", asks(whole=1))
    node.add(theirs)
    held = node.kubelet.give(theirs.uid, "main", names.GPU, {0: [GPUS[1].uuid]}, b"")
    await node.start(held)
    assert (node.files, node.written) == ({}, [])
    assert node.starts.others() == {theirs.uid: {"main": (whole_part(1),)}}


async def test_a_slot_without_our_answer_does_not_start(node: Node) -> None:
    node.add(A)
    held = node.kubelet.give(A.uid, "main", names.VGPU, {-1: ["slot-0"]}, b"")
    with pytest.raises(StartRefusedError, match="does not say what pod team/a was answered"):
        await node.start(held)
    assert (node.files, dict(node.server.containers)) == ({}, {})


def lends(node: Node, mib: int, held: int) -> None:
    """A GPU of so many MiB, on which a borrower holds so many beyond its slice of 5,000."""
    gpu = NvmlGpu(0, GPUS[0].uuid, "", mib << 20)
    all_held = (5_000 + held) << 20
    # By the driver's word, for it has no process here.
    node.server.containers["uid-s-main"].limits.update(0, memory_overhead=all_held)
    usages = {gpu.uuid: Usage(0.0, all_held)}
    node.server.loans.take(GpuLook(0.0, 1, usages, {}), [gpu])


SOFT = on_gpu(
    replace(pod_on_node("s", HALF), demand=gpu_demand([HALF], {names.VGPU_MEMORY_POLICY: "soft"})),
    main=[part(0)],
)


async def test_a_start_waits_for_memory_that_is_lent(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "_HOLD", -1.0)
    node.add(SOFT, A)
    await node.start(node.give(SOFT, "slot-0"))
    lends(node, 12_000, held=3_000)
    held = node.give(A, "slot-1")
    with pytest.raises(
        StartRefusedError,
        match=r"pod team/a has no room yet: 1512 MiB of .*0 are lent to team/s and come back",
    ):
        await node.start(held)
    assert "a-main" not in node.files
    lends(node, 12_000, held=1_000)
    monkeypatch.undo()  # the server may have lent it before, and takes it back at its next tick
    await node.start(held)
    assert "a-main" in node.files
    assert not node.refused
    # What a pod has been given is not kept for it again, nor when it has gone.
    assert node.server.loans.claim("x", {GPUS[0].uuid: 400 << 20}) == ""
    node.starts.forget(A.uid)
    assert node.server.loans.claim("x", {GPUS[0].uuid: 5_000 << 20}) == ""


async def test_who_waits_for_lent_memory_is_given_time_before_it_is_replaced(
    node: Node, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "_REPLACE_AFTER", -1.0)
    node.add(SOFT, A)
    await node.start(node.give(SOFT, "slot-0"))
    lends(node, 12_000, held=3_000)
    held = node.give(A, "slot-1")
    with pytest.raises(StartRefusedError, match="come back"):
        await node.start(held)
    assert not node.refused
    monkeypatch.setattr(starts, "_REPLACE_LENT_AFTER", -1.0)
    with pytest.raises(StartRefusedError, match="come back"):
        await node.start(held)
    ((name, _, is_replaced),) = node.refused
    assert (name, is_replaced) == ("a", True)
