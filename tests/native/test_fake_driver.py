"""The fake driver's names: each variant is a function of its own, found as in the real one."""

import importlib.util
import json
import subprocess
import sys
from collections import defaultdict
from types import ModuleType

import pytest

from native import build
from native.fake import Fake

LEGACY, PER_THREAD = 1, 2
RESOLVE = """
import ctypes, json, sys
driver = ctypes.CDLL(sys.argv[1])
address = lambda name: ctypes.cast(getattr(driver, name), ctypes.c_void_p).value
found = ctypes.c_void_p()
status = ctypes.c_int()
for base, version, flags, expected, code in json.load(sys.stdin):
    result = driver.cuGetProcAddress_v2(
        base.encode(), ctypes.byref(found), version, ctypes.c_uint64(flags), ctypes.byref(status))
    if (found.value, status.value) != (address(expected) if expected else None, code):
        print(base, version, flags, expected, result, status.value)
"""
NOTHING = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
context = ctypes.c_void_p()
for name in sys.stdin.read().split():
    if driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        sys.exit(f"{name}: no context after it")
    driver.cuCtxSetCurrent(context)
    print(name, flush=True)
    getattr(driver, name)(*[ctypes.c_uint64(0)] * 12)
"""


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """native/tools/fake_entries.py."""
    path = build.ROOT / "native" / "tools" / "fake_entries.py"
    spec = importlib.util.spec_from_file_location("fake_entries", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run_python(text: str, *arguments: str, fake: Fake, cuda: int, given: str = "") -> str:
    """What a Python program on the plain fake prints."""
    environment = fake.environment(cuda=cuda)
    environment["LD_LIBRARY_PATH"] = str(build.PLAIN)
    return subprocess.run(
        [sys.executable, "-c", text, *arguments],
        input=given,
        env=environment,
        text=True,
        capture_output=True,
        check=True,
    ).stdout


def test_every_symbol_of_the_headers_is_exported_at_its_own_address(
    generator: ModuleType,
) -> None:
    symbols = {entry.symbol for entry in generator.entries(build.cuda_headers(), "cc")}
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", build.PLAIN / "libcuda.so.1"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [line.split() for line in listed.splitlines()]
    assert {name for _, _, name in rows} == symbols
    assert len({address for address, _, _ in rows}) == len(symbols)
    assert len({generator.split(symbol)[0] for symbol in symbols}) > 500


@pytest.mark.parametrize("presented", [11080, 12040, 13000, 13050])
def test_names_resolve_by_version_and_stream_flag(
    fake: Fake, generator: ModuleType, presented: int
) -> None:
    variants = defaultdict(list)
    for entry in generator.entries(build.cuda_headers(), "cc"):
        variants[entry.base].append(entry)
    questions: list[tuple[str, int, int, str | None, int]] = [("cuNothing", 12000, 0, None, 1)]
    for base, entries in variants.items():
        known = [entry for entry in entries if entry.version <= presented]
        for version in {2000, 3020, 11030, 12000, presented, *(entry.version for entry in known)}:
            for flags in (0, LEGACY, PER_THREAD):
                fit = sorted(
                    (bool(entry.variant), entry.version, entry.symbol)
                    for entry in known
                    if entry.version <= version and (flags == PER_THREAD or not entry.variant)
                )
                code = 0 if fit else 2 if known else 1
                questions.append((base, version, flags, fit[-1][2] if fit else None, code))
    library = str(build.PLAIN / "libcuda.so.1")
    wrong = run_python(RESOLVE, library, fake=fake, cuda=presented, given=json.dumps(questions))
    assert wrong == ""


def test_no_function_crashes_on_missing_arguments(fake: Fake, generator: ModuleType) -> None:
    symbols = [entry.symbol for entry in generator.entries(build.cuda_headers(), "cc")]
    library = str(build.PLAIN / "libcuda.so.1")
    printed = run_python(NOTHING, library, fake=fake, cuda=13050, given=" ".join(symbols))
    assert printed.split() == symbols
    assert all(fake.calls(symbol) > 0 for symbol in symbols), "every call is counted"


def test_an_older_driver_does_not_export_what_came_later(generator: ModuleType) -> None:
    for presented in generator.PRESENTED:
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", build.PLAIN / f"cuda-{presented}" / "libcuda.so.1"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        names = {line.split()[2] for line in listed.splitlines()}
        assert ("cuCtxCreate_v4" in names) == (presented >= 12050)
        assert ("cuMemGetMemPool" in names) == (presented >= 13000)
        assert "cuMemAlloc_v2" in names


def test_nvidias_runtime_resolves_its_names_and_is_refused_its_private_tables(fake: Fake) -> None:
    runtime = build.cuda_headers().parent / "lib" / "libcudart.so.13"
    text = """
import ctypes, sys
runtime = ctypes.CDLL(sys.argv[1])
print(runtime.cudaGetDeviceCount(ctypes.byref(ctypes.c_int())))
"""
    assert run_python(text, str(runtime), fake=fake, cuda=13050) == "500\n"
    assert fake.calls("cuGetProcAddress_v2") > 400
    assert fake.calls("cuGetExportTable") > 0
