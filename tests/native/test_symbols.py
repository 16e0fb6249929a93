"""Every function of the driver is classified; what the library knows of its ABI is true."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from native import build

SOURCES = build.ROOT / "native" / "vgpu"
TABLE = SOURCES / "symbols.tsv"
sys.path.insert(0, str(build.ROOT / "native" / "tools"))
import fake_entries  # noqa: E402  (it reads NVIDIA's headers: what they declare, since which version)

CLASSES = {"hook", "pass", "observe"}
#: Exported by some drivers, an inline function in cuda.h.
NOT_IN_HEADERS = {"cuGetProcAddress_v2_ptsz"}


def table() -> dict[str, dict[str, str]]:
    """The lines of symbols.tsv by name."""
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = {row["name"]: row for row in rows}
    assert len(found) == len(rows), "a name occurs twice"
    return found


def exported() -> set[str]:
    """What the built library exports."""
    said = build.checked("nm", "-D", "--defined-only", "-P", str(build.INTERPOSER), environment={})
    return {line.split()[0] for line in said.splitlines()}


def declared() -> set[str]:
    """The names that cuda_functions.h declares."""
    text = (SOURCES / "driver/cuda_functions.h").read_text()
    return set(re.findall(r"^CUresult (cu\w+)\(", text, re.MULTILINE))


def test_every_function_of_the_installed_headers_is_classified() -> None:
    known = table()
    entries = fake_entries.entries(build.cuda_headers(), "cc")
    missing = sorted({entry.symbol for entry in entries} - known.keys())
    assert not missing, f"new in cuda.h, add to symbols.tsv: {missing}"
    for entry in entries:
        row = known[entry.symbol]
        assert (row["base"], int(row["since"])) == (entry.base, entry.version)
    gone = {name for name in known if name.startswith("cu")} - {entry.symbol for entry in entries}
    assert gone == NOT_IN_HEADERS


def test_a_class_and_a_reason_stand_beside_each_name() -> None:
    for row in table().values():
        assert row["class"] in CLASSES, row
        assert row["reason"], row


def test_hooks_are_what_the_library_exports_and_nothing_else() -> None:
    hooks = {name for name, row in table().items() if row["class"] == "hook"}
    assert exported() == hooks | {"dlsym", "dlvsym"}
    assert {name for name in hooks if name.startswith("cu")} <= declared()


def test_all_variants_of_a_hooked_name_are_hooked() -> None:
    by_base: dict[str, set[str]] = {}
    for row in table().values():
        by_base.setdefault(row["base"], set()).add(row["class"])
    mixed = {base: classes for base, classes in by_base.items() if len(classes) > 1}
    assert not mixed


def test_function_types_are_those_of_cuda_h(tmp_path: Path) -> None:
    text = '#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include "driver/cuda_abi.h"\n'
    assert not compiled(text, tmp_path)
    # That a wrong one would be found:
    wrong = text + "CUresult cuMemAlloc_v2(CUdeviceptr *, unsigned int);\n"
    assert "conflicting types" in compiled(wrong, tmp_path)


def compiled(text: str, folder: Path) -> str:
    """What the compiler says of it."""
    source = folder / "types.c"
    source.write_text(text)
    command = ["cc", "-std=gnu11", "-fsyntax-only", "-I", str(build.cuda_headers())]
    done = subprocess.run(
        [*command, "-I", str(SOURCES), str(source)], capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else ""


#: Structure: our member -> NVIDIA's, where the names differ by more than style. Arrays stand for
#: the members X, Y, Z.
MEMBERS = {
    "CUmemAllocationProp": "type=type handle_types=requestedHandleTypes location=location"
    " security=win32HandleMetaData flags=allocFlags",
    "CUmemPoolProps": "type=allocType handle_types=handleTypes location=location"
    " security=win32SecurityAttributes max_size=maxSize usage=usage rdma=gpuDirectRDMACapable",
    "CUmemLocation": "type=type id=id",
    "CUmemAccessDesc": "location=location flags=flags",
    "CUDA_ARRAY_DESCRIPTOR": "width=Width height=Height format=Format channels=NumChannels",
    "CUDA_ARRAY_DESCRIPTOR_v1": "width=Width height=Height format=Format channels=NumChannels",
    "CUDA_ARRAY3D_DESCRIPTOR": "width=Width height=Height depth=Depth format=Format"
    " channels=NumChannels flags=Flags",
    "CUDA_ARRAY3D_DESCRIPTOR_v1": "width=Width height=Height depth=Depth format=Format"
    " channels=NumChannels flags=Flags",
    "CUDA_ARRAY_MEMORY_REQUIREMENTS": "size=size alignment=alignment",
    "CUarrayMapInfo": "resource_type=resourceType resource=resource"
    " subresource_type=subresourceType subresource=subresource operation=memOperationType"
    " handle_type=memHandleType handle=memHandle offset=offset device_mask=deviceBitMask"
    " flags=flags",
    "CUmulticastObjectProp": "devices=numDevices size=size handle_types=handleTypes flags=flags",
    "CUDA_MEMCPY2D": "src_x=srcXInBytes src_type=srcMemoryType src_device=srcDevice"
    " src_array=srcArray src_pitch=srcPitch dst_x=dstXInBytes dst_type=dstMemoryType"
    " dst_device=dstDevice dst_pitch=dstPitch width=WidthInBytes height=Height",
    "CUDA_MEMCPY2D_v1": "src_x=srcXInBytes src_type=srcMemoryType src_device=srcDevice"
    " dst_type=dstMemoryType dst_device=dstDevice dst_pitch=dstPitch width=WidthInBytes"
    " height=Height",
    "CUDA_MEMCPY3D": "src_x=srcXInBytes src_type=srcMemoryType src_device=srcDevice"
    " src_context=reserved0 src_pitch=srcPitch dst_x=dstXInBytes dst_type=dstMemoryType"
    " dst_device=dstDevice dst_context=reserved1 width=WidthInBytes height=Height depth=Depth",
    "CUDA_MEMCPY3D_PEER": "src_type=srcMemoryType src_context=srcContext dst_type=dstMemoryType"
    " dst_context=dstContext width=WidthInBytes height=Height depth=Depth",
    "CUDA_MEMCPY3D_v1": "src_type=srcMemoryType src_device=srcDevice dst_type=dstMemoryType"
    " dst_device=dstDevice width=WidthInBytes height=Height depth=Depth",
    "CUDA_MEMCPY3D_BATCH_OP": "src=src dst=dst extent=extent order=srcAccessOrder flags=flags",
    "CUmemcpy3DOperand": "type=type op=op op.ptr.location=op.ptr.locHint"
    " op.array.offset=op.array.offset",
    "CUgraphEdgeData": "from=from_port to=to_port type=type",
    "CUDA_KERNEL_NODE_PARAMS": "function=func grid=gridDimX block=blockDimX shared=sharedMemBytes"
    " params=kernelParams extra=extra kernel=kern context=ctx",
    "CUDA_KERNEL_NODE_PARAMS_v1": "function=func grid=gridDimX block=blockDimX"
    " shared=sharedMemBytes params=kernelParams extra=extra",
    "CUDA_MEM_ALLOC_NODE_PARAMS": "pool=poolProps access=accessDescs accesses=accessDescCount"
    " bytes=bytesize ptr=dptr",
    "CUgraphNodeParams": "type=type kernel=kernel alloc=alloc free.ptr=free.dptr"
    " child.graph=graph.graph conditional.bodies=conditional.phGraph_out"
    " conditional.size=conditional.size conditional.context=conditional.ctx",
    "CUDA_GRAPH_INSTANTIATE_PARAMS": "flags=flags upload_stream=hUploadStream"
    " error_node=hErrNode_out result=result_out",
    "CUgraphExecUpdateResultInfo": "result=result error_node=errorNode error_from=errorFromNode",
    "CUlaunchAttribute": "id=id value=value",
    "CUlaunchConfig": "grid=gridDimX block=blockDimX shared=sharedMemBytes stream=hStream"
    " attributes=attrs n_attributes=numAttrs",
    "CUDA_LAUNCH_PARAMS": "function=function grid=gridDimX block=blockDimX shared=sharedMemBytes"
    " stream=hStream params=kernelParams",
    "CUdevResource": "type=type sm=sm sm.count=sm.smCount sm.minimum=sm.minSmPartitionSize"
    " next=nextResource",
    "CUuuid": "",
    "CUipcMemHandle": "",
    "CUmemPoolPtrExportData": "",
    "CUdeviceptr": "",
    "CUmemGenericAllocationHandle": "",
    "CUlogicalEndpointId": "",
    "CUresult": "",
    "CUlimit": "",
}


def measures(include: str, column: int, folder: Path) -> list[str]:
    """The sizes and offsets, and the values of all our enumerators, by this header."""
    lines = []
    for name, members in MEMBERS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for pair in members.split():
            member, label = pair.split("=")[column], pair.split("=")[0]
            lines.append(f'printf("{name}.{label} %zu\\n", offsetof({name}, {member}));')
    ours = (SOURCES / "driver/cuda_abi.h").read_text()
    values = sorted(set(re.findall(r"\b(CU(?:DA)?_[A-Z][A-Z0-9_]+) =", ours)))
    lines += [f'printf("{name} %d\\n", (int){name});' for name in values]
    source = folder / "measures.c"
    source.write_text(
        f"#define __CUDA_API_VERSION_INTERNAL\n#include {include}\n#include <stddef.h>\n"
        f"#include <stdio.h>\nint main(void)\n{{\n" + "\n".join(lines) + "\nreturn 0;\n}\n"
    )
    program = folder / "measures"
    includes = ["-I", str(build.cuda_headers() if column else SOURCES)]
    subprocess.run(["cc", "-std=gnu11", *includes, str(source), "-o", str(program)], check=True)
    return build.checked(program, environment={}).splitlines()


def test_sizes_offsets_and_values_are_those_of_cuda_h(tmp_path: Path) -> None:
    ours = measures('"driver/cuda_abi.h"', 0, tmp_path)
    assert ours == measures("<cuda.h>", 1, tmp_path)
    assert len(ours) > 200


def dynamic(*options: str, library: Path = build.INTERPOSER) -> str:
    """What readelf says of the library."""
    return build.checked("readelf", "-W", *options, str(library), environment={})


LIBRARIES = [build.INTERPOSER, build.LIBRARIES / "proxy" / "libcuda.so.1"]


@pytest.mark.skipif(bool(build.SANITIZE), reason="sanitizers need more of libc")
@pytest.mark.parametrize("library", LIBRARIES, ids=["preload", "proxy"])
def test_the_library_runs_on_glibc_2_17(library: Path) -> None:
    needed = set(re.findall(r"@(GLIBC_[\d.]+)", dynamic("--dyn-syms", library=library)))
    newest = max(tuple(map(int, name[6:].split("."))) for name in needed)
    assert newest <= (2, 17), needed
    wanted = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic("--dynamic", library=library))
    assert sorted(wanted) == ["libc.so.6", "libdl.so.2"]


@pytest.mark.skipif(bool(build.SANITIZE), reason="sanitizers export symbols of their own")
@pytest.mark.parametrize("library", LIBRARIES, ids=["preload", "proxy"])
def test_only_names_of_the_driver_are_exported_and_memory_is_protected(library: Path) -> None:
    said = build.checked("nm", "-D", "--defined-only", "-P", str(library), environment={})
    names = {line.split()[0] for line in said.splitlines()}
    proxy = library != build.INTERPOSER
    extra = {"alnair_vgpu_proxy"} if proxy else {"dlsym", "dlvsym"}
    assert {name for name in names if not re.match(r"(cu|nvml)[A-Z]", name)} == extra
    tags = dynamic("--dynamic", library=library)
    assert "BIND_NOW" in tags
    assert "TEXTREL" not in tags
    segments = dynamic("--segments", library=library)
    assert "GNU_RELRO" in segments
    stack = re.search(r"GNU_STACK.*", segments)
    assert stack
    assert "RWE" not in stack[0]
    if not build.COVERAGE:
        tls = re.search(r"TLS\s+(?:0x\w+\s+){4}0x(\w+)", segments)
        assert tls
        assert int(tls[1], 16) <= 256, "a process that is loaded already has little room for more"
