"""Memory that graphs allocate when they run; more paths for tests/native/memory_paths.py."""

import struct
from collections.abc import Iterator

from native.calls import MIB, Calls, Out, Var
from native.memory_paths import DEVICE, PATHS, Path, Script, ok, path

#: CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_NON_BLOCKING.
UPLOAD, RELAXED, NON_BLOCKING = 2, 2, 1


def allocating_graph(call: Calls, size: int, graph: str = "graph") -> None:
    """Makes a graph that allocates and frees."""
    ok(call("cuGraphCreate", Out(graph), 0))
    pool = struct.pack("<IIIiQQH54x", 1, 0, DEVICE, 0, 0, 0, 0)
    call.ask("set", "node", pool + struct.pack("<QQQQ", 0, 0, size, 0))
    ok(call("cuGraphAddMemAllocNode", Out("alloc"), Var(graph), 0, 0, Out("node")))
    address = struct.unpack_from("<Q", bytes.fromhex(call.ask("hex", "node", 120)), 112)[0]
    ok(call("cuGraphAddMemFreeNode", Out("free"), Var(graph), Out("alloc"), 1, address))


def trimmed(call: Calls) -> None:
    """Ends the graph and gives its memory back."""
    ok(call("cuStreamSynchronize", 0))
    ok(call("cuGraphExecDestroy", Var("exec")))
    ok(call("cuDeviceGraphMemTrim", 0))


def launched(instantiate: str, launch: str, *arguments: object) -> Script:
    def script(call: Calls) -> Iterator[None]:
        allocating_graph(call, 40 * MIB)
        ok(call(instantiate, Out("exec"), Var("graph"), *arguments))  # type: ignore[arg-type]
        yield
        for _ in range(3):
            ok(call(launch, Var("exec"), 0))
            yield
        trimmed(call)
        yield

    return script


for _name, _instantiate, _arguments in (
    ("graph", "cuGraphInstantiateWithFlags", (0,)),
    ("graph_of_cuda_10", "cuGraphInstantiate", (0, 0, 0)),
    ("graph_of_cuda_11", "cuGraphInstantiate_v2", (0, 0, 0)),
):
    PATHS[_name] = Path(
        launched(_instantiate, "cuGraphLaunch", *_arguments),
        (_instantiate, "cuGraphLaunch", "cuDeviceGraphMemTrim"),
    )
PATHS["graph_per_thread"] = Path(
    launched("cuGraphInstantiateWithFlags", "cuGraphLaunch_ptsz", 0), ("cuGraphLaunch_ptsz",)
)
for _upload in ("cuGraphUpload", "cuGraphUpload_ptsz"):
    PATHS[f"uploaded_{_upload}"] = Path(
        launched("cuGraphInstantiateWithFlags", _upload, 0), (_upload,)
    )


def uploading(instantiate: str) -> Script:
    def script(call: Calls) -> Iterator[None]:
        allocating_graph(call, 70 * MIB)
        call.ask("set", "how", struct.pack("<QQQI4x", UPLOAD, 0, 0, 0))
        ok(call(instantiate, Out("exec"), Var("graph"), Out("how")))
        yield
        trimmed(call)
        yield

    return script


for _instantiate in ("cuGraphInstantiateWithParams", "cuGraphInstantiateWithParams_ptsz"):
    PATHS[f"uploaded_by_{_instantiate}"] = Path(uploading(_instantiate), (_instantiate,))


@path()
def two_graphs_share_their_memory(call: Calls) -> Iterator[None]:
    allocating_graph(call, 40 * MIB)
    ok(call("cuGraphInstantiateWithFlags", Out("exec"), Var("graph"), 0))
    allocating_graph(call, 60 * MIB, "other")
    ok(call("cuGraphInstantiateWithFlags", Out("second"), Var("other"), 0))
    for exec_ in ("exec", "second", "exec"):
        ok(call("cuGraphLaunch", Var(exec_), 0))
        yield
    ok(call("cuGraphExecDestroy", Var("second")))
    trimmed(call)
    yield


@path()
def child_graph(call: Calls) -> Iterator[None]:
    allocating_graph(call, 40 * MIB)
    ok(call("cuGraphCreate", Out("parent"), 0))
    ok(call("cuGraphAddChildGraphNode", Out("child"), Var("parent"), 0, 0, Var("graph")))
    ok(call("cuGraphInstantiateWithFlags", Out("exec"), Var("parent"), 0))
    ok(call("cuGraphLaunch", Var("exec"), 0))
    yield
    trimmed(call)
    yield


@path()
def captured(call: Calls) -> Iterator[None]:
    ok(call("cuStreamCreate", Out("stream"), NON_BLOCKING))
    ok(call("cuStreamBeginCapture_v2", Var("stream"), RELAXED))
    ok(call("cuMemAllocAsync", Out("a"), 5 * MIB, Var("stream")))
    ok(call("cuMemFreeAsync", Var("a"), Var("stream")))
    yield
    ok(call("cuStreamEndCapture", Var("stream"), Out("graph")))
    ok(call("cuGraphInstantiateWithFlags", Out("exec"), Var("graph"), 0))
    yield
    ok(call("cuGraphLaunch", Var("exec"), Var("stream")))
    ok(call("cuStreamSynchronize", Var("stream")))
    yield
    trimmed(call)
    yield
