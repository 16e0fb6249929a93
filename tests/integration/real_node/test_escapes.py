"""What hostile tenants try on a real node: limited, refused, or found and evicted.

docs/concepts/isolation.md says of each which.
"""

import asyncio
import datetime as dt
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.errors import ApiError
from alnair.kube.resources import NAMESPACES, PODS, Manifest
from alnair.local.real_node import images
from alnair.local.real_node.init_script import FAKE_GPU, driver_libraries
from alnair.processes.agent.enforcement import STRAY
from alnair.processes.agent.violation_conditions import REASON
from kit.live.gpu_view import VIEW, as_a_slice, seen
from kit.live.real_pods import (
    NAMESPACE,
    RealPods,
    busy,
    container,
    gpu,
    pod,
    python,
    reports,
    sliced,
    until,
)

LIMIT = 1024
#: Seconds from the first use of a GPU to the eviction.
FOUND = 5.0
#: The driver that the proxy stands in for: programs can read it.
REAL = "/run/alnair/driver/libcuda.so.1"
LIBRARIES = driver_libraries()
#: A way to open a library, and what then is refused: memory beyond the slice.
TRY = """
import _ctypes, ctypes as c, json, os, sys
def refused(way, library):
    # In a process of its own, as what is loaded once is found again.
    child = os.fork()
    if child:
        return os.waitpid(child, 0)
    try:
        handle = library()
        def call(name, *arguments):
            return c.CFUNCTYPE(c.c_int)(_ctypes.dlsym(handle, name))(*arguments)
        context, memory, total = c.c_void_p(), c.c_uint64(), c.c_size_t()
        results = [call("cuInit", 0), call("cuDevicePrimaryCtxRetain", c.byref(context), 0)]
        results += [call("cuCtxSetCurrent", context)]
        results += [call("cuDeviceTotalMem_v2", c.byref(total), 0)]
        results += [call("cuMemAlloc_v2", c.byref(memory), c.c_size_t(3 << 30))]
        print(json.dumps([way, results, total.value >> 20]), flush=True)
    finally:
        os._exit(0)
def new_namespace(path):
    own = c.CDLL(None)
    own.dlmopen.restype, own.dlmopen.argtypes = c.c_void_p, [c.c_long, c.c_char_p, c.c_int]
    return own.dlmopen(-1, path.encode(), os.RTLD_NOW)
paths = ["libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1", "/usr/lib64/libcuda.so.1",
         "/usr/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"]
for path in [*paths, *sys.argv[1:]]:
    refused(f"{path} local", lambda: _ctypes.dlopen(path, os.RTLD_NOW))
    refused(f"{path} global", lambda: _ctypes.dlopen(path, os.RTLD_NOW | os.RTLD_GLOBAL))
    refused(f"{path} deepbind", lambda: _ctypes.dlopen(path, os.RTLD_NOW | os.RTLD_DEEPBIND))
    refused(f"{path} dlmopen", lambda: new_namespace(path))
"""
#: Its loader is static, and reads no list of what to preload; its driver is the node's.
OWN_LOADER = """
import os, pathlib, shutil, sys
(loader,) = pathlib.Path("/lib64").glob("ld-linux-*")
pathlib.Path("/own").mkdir()
text = loader.read_bytes().replace(b"/etc/ld.so.preload", b"/etc/nothing/there")
pathlib.Path("/own/ld").write_bytes(text)
pathlib.Path("/own/ld").chmod(0o755)
shutil.copy(sys.argv[1], "/own/libcuda.so.1")
program = ["/usr/bin/python3", "/usr/local/bin/cuda_load.py", *sys.argv[2:]]
os.execv("/own/ld", ["/own/ld", "--library-path", "/own", *program])
"""
#: The whole of the image and the GPU's device files, where the fake GPU can be reached, too.
JAIL = (
    "set -e; cp -a /usr /lib* /bin /run/; mkdir -p /run/run /run/dev;"
    f" cp -a /dev/nvidia* /run/dev/; ln -s {FAKE_GPU.removeprefix('/run')} /run{FAKE_GPU}"
)


def tried(text: str) -> dict[str, tuple[list[int], int]]:
    """What TRY wrote: way → results, and MiB of the GPU."""
    lines = [json.loads(line) for line in text.splitlines()]
    return {way: (results, total) for way, results, total in lines}


async def found_and_evicted(pods: RealPods, manifest: Manifest, reason: str) -> dict[str, Any]:
    """Wait until a pod is told of and evicted, within `FOUND` of its first use of the GPU."""
    name = manifest["metadata"]["name"]
    # Long enough for its program to say what it did; and the pod stays until it has been looked at.
    manifest["spec"]["terminationGracePeriodSeconds"] = 10
    manifest["metadata"]["finalizers"] = ["example.com/looked-at"]
    made = await pods.create(manifest)
    leaving: Manifest = {}
    seen_at = 0.0

    async def is_leaving() -> bool:
        nonlocal leaving, seen_at
        leaving = await pods.get(name)
        seen_at = time.time()
        return "deletionTimestamp" in leaving["metadata"]

    stood_still = 0.0

    async def watch() -> None:
        """Count the seconds in which this busy machine did nothing: the agent's are as many."""
        nonlocal stood_still
        while True:
            slept = time.monotonic()
            await asyncio.sleep(0.1)
            stood_still += max(0.0, time.monotonic() - slept - 0.2)

    watching = asyncio.create_task(watch())
    try:
        text = await pods.says(name, "percent")
        await until(is_leaving, f"{name} is evicted")
    finally:
        watching.cancel()
        await pods.client.delete(PODS, name, NAMESPACE, grace_seconds=0)
        patch = {"metadata": {"finalizers": None}}
        await pods.client.merge_patch(PODS, name, patch, NAMESPACE)
    line = reports(text)[0]
    began = line["time"] - line["seconds"]
    metadata = leaving["metadata"]
    deleted = dt.datetime.fromisoformat(metadata["deletionTimestamp"]).timestamp()
    # The API server has whole seconds, and leaves out what is beyond them: it was by the end of
    # that second, and before it was seen.
    evicted = min(deleted - metadata["deletionGracePeriodSeconds"] + 1, seen_at)
    event = await pods.event(made, reason)
    print(f"{name}: evicted {evicted - began:.1f} s after its first use: {event['message']}")
    assert evicted - began <= FOUND + stood_still, "what isolation.md promises"
    reasons = {one["type"]: one.get("reason") for one in leaving["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"
    return line


async def test_without_variables_a_program_is_limited_all_the_same(pods: RealPods) -> None:
    bare = container(images.PYTHON, "env", "-i", "/usr/bin/python3", "-c", VIEW)
    bare["resources"] = {"limits": sliced(LIMIT, 20)}
    await pods.create(pod("bare", bare))
    assert seen(await pods.ended("bare")) == as_a_slice(LIMIT, gpu(await pods.get("bare")))


@pytest.mark.parametrize("preloaded", ["libm.so.6", REAL])
async def test_what_a_program_preloads_itself_changes_no_limit(
    pods: RealPods, preloaded: str
) -> None:
    name = f"preloads-{'driver' if preloaded == REAL else 'other'}"
    env = [{"name": "LD_PRELOAD", "value": preloaded}]
    await pods.create(pod(name, python(VIEW, limits=sliced(LIMIT, 20), env=env)))
    assert seen(await pods.ended(name)) == as_a_slice(LIMIT, gpu(await pods.get(name)))


async def test_by_whichever_path_the_driver_is_opened_it_is_limited(pods: RealPods) -> None:
    program = ("python3", "-uc", TRY, f"{LIBRARIES}/libcuda.so.1")
    await pods.create(pod("paths", container(images.PYTHON, *program, limits=sliced(LIMIT, 20))))
    ways = tried(await pods.ended("paths"))
    assert len(ways) == 24
    # All calls succeed but the last: CUDA_ERROR_OUT_OF_MEMORY.
    assert {str(found) for found in ways.values()} == {str(([0, 0, 0, 0, 2], LIMIT))}, ways


def hiding(name: str, seccomp: str) -> Manifest:
    """A pod that mounts something else over its limits."""
    script = f"mount -t tmpfs none /run/alnair/vgpu && exec python3 -c '{VIEW}'"
    command = ("unshare", "-Urm", "sh", "-c", script)
    profile = {"seccompProfile": {"type": seccomp}} if seccomp else {}
    limited = container(images.PYTHON, *command, limits=sliced(LIMIT, 20), securityContext=profile)
    return pod(name, limited)


@pytest.mark.parametrize("seccomp", ["", "RuntimeDefault"])
async def test_hiding_the_limits_is_refused_by_the_kernel(pods: RealPods, seccomp: str) -> None:
    name = f"hides-{seccomp.lower() or 'unasked'}"
    await pods.create(hiding(name, seccomp))
    assert "not permitted" in await pods.failed(name)


@pytest.fixture
async def trusted(client: Client) -> AsyncIterator[None]:
    """An administrator has allowed the namespace what may harm its node."""

    async def label(value: str | None) -> None:
        labels = {"ai.centaurus.io/host-access": value}
        await client.merge_patch(NAMESPACES, NAMESPACE, {"metadata": {"labels": labels}})

    await label("allowed")
    yield
    await label(None)


async def test_a_pod_with_a_slice_goes_unconfined_only_where_it_may(pods: RealPods) -> None:
    with pytest.raises(ApiError, match="Unconfined"):
        await pods.create(hiding("unconfined", "Unconfined"))


@pytest.mark.usefixtures("trusted")
async def test_who_hides_the_limits_unconfined_gets_no_cuda(pods: RealPods) -> None:
    async def is_allowed() -> bool:
        try:
            await pods.create(hiding("hides", "Unconfined"))
        except ApiError:  # the policy hears of the label a moment later
            return False
        return True

    await until(is_allowed, "the namespace is allowed it")
    assert "('cuInit', 800)" in await pods.failed("hides")


async def test_a_copy_of_the_library_elsewhere_gives_no_cuda(pods: RealPods) -> None:
    script = f"{JAIL}; exec chroot /run /usr/local/bin/cuda_load"
    copied = container(images.CUDA, "sh", "-c", script, limits=sliced(LIMIT, 20))
    await pods.create(pod("copied", copied))
    said = await pods.failed("copied")
    assert "no CUDA in this container" in said
    assert "cuInit: " in said


async def test_a_copy_of_the_driver_elsewhere_is_found_and_evicted(pods: RealPods) -> None:
    beyond = busy("--memory-mib", 4000)["command"]
    script = (
        f"{JAIL}; cp {REAL} /run{LIBRARIES}/libcuda.so.1;"
        f" exec chroot /run /usr/local/bin/{' '.join(beyond)}"
    )
    jailed = container(images.CUDA, "sh", "-c", script, limits=sliced(LIMIT, 20))
    line = await found_and_evicted(pods, pod("jailed", jailed), REASON)
    assert line["total_mib"] > LIMIT


async def test_a_program_with_a_loader_and_a_driver_of_its_own_is_found_and_evicted(
    pods: RealPods,
) -> None:
    beyond = busy("--memory-mib", 4000)["command"][1:]
    own = container(images.PYTHON, "python3", "-uc", OWN_LOADER, REAL, *beyond)
    own["resources"] = {"limits": sliced(LIMIT, 20)}
    line = await found_and_evicted(pods, pod("loader", own), REASON)
    assert line["total_mib"] > LIMIT


async def test_a_pod_that_asked_for_nothing_and_uses_a_gpu_is_found_and_evicted(
    pods: RealPods,
) -> None:
    files = [LIBRARIES / one for one in ("libcuda.so.1", "libfakegpu.so")]
    mounted = {f"v{i}": str(path) for i, path in enumerate([*files, FAKE_GPU])}
    stray = busy(volumeMounts=[{"name": n, "mountPath": path} for n, path in mounted.items()])
    volumes = [{"name": n, "hostPath": {"path": path}} for n, path in mounted.items()]
    await found_and_evicted(pods, pod("stray", stray, volumes=volumes), STRAY)
