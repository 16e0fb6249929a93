"""However a program asks for a function of the driver, it gets ours, in the ABI asked for."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from native import build
from native.container import REFUSED, Container
from native.fake import Fake

TABLE = build.ROOT / "native" / "vgpu" / "symbols.tsv"
PROXY = build.LIBRARIES / "proxy"
OURS = "libalnair_vgpu.so"
DRIVER = "libcuda.so.1"
GIB = 1 << 30

Request = tuple[str, int, int]


def symbols() -> list[dict[str, str]]:
    """The lines of symbols.tsv about the driver."""
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in rows if row["name"].startswith("cu")]


def hooks() -> set[str]:
    """The driver's functions that the built library exports."""
    said = build.checked("nm", "-D", "--defined-only", "-P", str(build.INTERPOSER), environment={})
    return {line.split()[0] for line in said.splitlines() if line.startswith("cu")}


def ask(
    environment: dict[str, str], style: str, requests: Sequence[Request], *more: str
) -> list[list[str]]:
    """[name, version, flags, object, symbol, status] of what the client got for each request."""
    with build.start(build.client("resolve"), style, *more, environment=environment) as process:
        out, error = process.communicate(
            "".join(f"{name} {version} {flags}\n" for name, version, flags in requests)
        )
    assert process.returncode == 0, error
    return [line.split() for line in out.splitlines()]


def same_functions(plain: list[list[str]], ours: list[list[str]]) -> None:
    """Every answer is the same function, in our library exactly where it has a hook."""
    known = hooks()
    assert [line[:3] + line[4:] for line in plain] == [line[:3] + line[4:] for line in ours]
    wrong = [line for line in ours if line[3] != "-" and (line[3] == OURS) != (line[4] in known)]
    assert not wrong, wrong[:10]
    assert any(line[3] == OURS for line in ours)


@pytest.mark.parametrize("cuda", [11080, 12040, 13000, 13050])
@pytest.mark.parametrize("style", ["proc1", "proc2"])
def test_every_name_version_and_stream_flag_resolves_to_the_function_without_us(
    fake: Fake, cuda: int, style: str
) -> None:
    rows = symbols()
    versions = sorted({int(row["since"]) for row in rows} | {cuda})
    requests = [
        (base, version, flags)
        for base in sorted({row["base"] for row in rows})
        for version in versions
        for flags in (0, 1, 2)
    ]
    plain = fake.environment(cuda=cuda)
    if style == "proc2" and cuda < 12000:
        pytest.skip("this driver has no cuGetProcAddress_v2")
    same_functions(
        ask(plain, style, requests),
        ask({**plain, "LD_PRELOAD": str(build.INTERPOSER)}, style, requests),
    )


@pytest.mark.parametrize("style", ["dlsym", "dlvsym", "default", "next"])
def test_dlsym_finds_our_function_for_each_exported_name(fake: Fake, style: str) -> None:
    requests = [(row["name"], 0, 0) for row in symbols()]
    plain = fake.environment()
    without = ask(plain, style, requests)
    ours = ask({**plain, "LD_PRELOAD": str(build.INTERPOSER)}, style, requests)
    if style == "dlvsym":  # the driver's names have no versions: nobody finds them so
        assert without == ours
    else:
        same_functions(without, ours)


@pytest.mark.skipif(bool(build.SANITIZE), reason="sanitizers do not allow a second namespace")
def test_other_callers_of_dlsym_notice_nothing(
    fake: Fake, container: Callable[..., Container], tmp_path: Path
) -> None:
    wrapper = tmp_path / "libnext.so"
    source = build.CLIENTS / "next.c"
    flags = ["-shared", "-fPIC", "-ldl", "-o", str(wrapper)]
    build.checked("cc", str(source), *flags, environment={})
    program = build.client("callers")
    found = {}
    for preload in ([str(wrapper)], [str(build.INTERPOSER), str(wrapper)]):
        environment = {**fake.environment(), **container().environment()}
        environment["LD_PRELOAD"] = ":".join(preload)
        said = build.checked(program, environment=environment)
        found[len(preload)] = dict(line.split(" ", 1) for line in said.splitlines())
    without, ours = found[1], found[2]
    assert ours["next"] == ours["chain"] == "1"
    # Each of these would be a way around us.
    assert ours.pop("namespace") == ours.pop("dlsym") == OURS
    without.pop("namespace"), without.pop("dlsym")
    assert ours == without
    assert (ours["missing"], ours["error"], ours["early"]) == ("-", "names it", "-")


def runtimes() -> list[Path]:
    """The real libcudart.so.*, from the development packages."""
    return sorted((build.cuda_headers().parent / "lib").glob("libcudart.so.*"))


def on_the_runtime(kind: str) -> tuple[Path, list[Path]]:
    """A program on the real CUDA runtime, shared or static, and its arguments."""
    if kind == "shared":
        return build.client("runtime"), runtimes()[:1]
    archive = build.cuda_headers().parent / "lib" / "libcudart_static.a"
    stream = ["-DPER_THREAD"] if kind == "per thread" else []
    return build.client("runtime", "-DLINKED", *stream, str(archive), "-lrt"), []


@pytest.mark.parametrize("kind", ["shared", "static", "per thread"])
def test_the_real_runtime_comes_to_us_and_sees_the_same_driver(fake: Fake, kind: str) -> None:
    program, arguments = on_the_runtime(kind)
    plain = build.run(program, *arguments, environment=fake.environment())
    with Container(fake.uuid()) as open_one, Container(fake.uuid(), state=REFUSED) as closed:
        environment = {**fake.environment(), **open_one.environment()}
        ours = build.run(program, *arguments, environment=environment)
        assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, "")
        for way in (closed.environment(), behind_proxy(fake, closed)):
            done = build.run(program, *arguments, environment={**fake.environment(), **way})
            assert done.stdout == "cudaGetDeviceCount 800\n"
            assert "no CUDA in this container" in done.stderr


@pytest.mark.parametrize("version", [11080, 12040, 13050])
@pytest.mark.parametrize("hashes", ["gnu", "sysv"])
def test_a_driver_that_hands_out_other_addresses_than_it_exports_is_hooked_all_the_same(
    container: Callable[..., Container], tmp_path: Path, version: int, hashes: str
) -> None:
    driver = tmp_path / DRIVER
    flags = ["-shared", "-fPIC", f"-DVERSION={version}", f"-Wl,--hash-style={hashes}"]
    flags += [f"-Wl,-soname,{DRIVER}", "-o", str(driver)]
    build.checked("cc", str(build.CLIENTS / "odd_driver.c"), *flags, environment={})
    made = container()
    environment = {**made.environment(), "LD_LIBRARY_PATH": str(tmp_path)}
    requests = [
        ("cuMemAlloc", 2000, 0),
        ("cuMemAlloc", 3020, 0),
        ("cuMemAlloc", 99990, 2),
        ("cuGetProcAddress", 11030, 0),
        ("cuGetProcAddress", 99990, 0),
        ("cuFutureThing", 99990, 0),
        ("cuNothing", 99990, 0),
    ]
    newest = "cuGetProcAddress_v2" if version >= 12000 else "cuGetProcAddress"
    names = ["cuMemAlloc", "cuMemAlloc_v2", "cuMemAlloc_v2", "cuGetProcAddress", newest]
    for style in ("proc1", "proc2"):
        answers = ask(environment, style, requests, "init")
        assert [line[3:5] for line in answers[:5]] == [[OURS, name] for name in names]
        assert [line[3] for line in answers[5:]] == [DRIVER, "-"]
        assert [line[5] for line in answers] == (
            ["-1"] * 7 if style == "proc1" else list("0000001")
        )
        assert made.slots()[-1].unhooked == 1, "the function that no table knows"
        for slot in made.slots():
            slot.owner = 0


@pytest.mark.parametrize("style", ["dlsym", "proc2"])
def test_of_a_known_driver_no_function_escapes_the_table(
    fake: Fake, container: Callable[..., Container], style: str
) -> None:
    made = container()
    environment = {**fake.environment(), **made.environment()}
    key = "base" if style == "proc2" else "name"
    names = sorted({row[key] for row in symbols()})
    ask(environment, style, [(name, 13050, 2) for name in names], "init")
    (slot,) = made.slots()
    assert slot.unhooked == 0


def test_a_driver_without_a_function_is_not_said_to_have_it(fake: Fake) -> None:
    environment = fake.environment(cuda=11080)
    environment["LD_LIBRARY_PATH"] = f"{build.LIBRARIES / 'cuda-11080'}:{build.LIBRARIES}"
    names = [(row["name"], 0, 0) for row in symbols()]
    for style in ("dlsym", "default", "next"):
        there = ask(environment, style, names)
        ours = ask({**environment, "LD_PRELOAD": str(build.INTERPOSER)}, style, names)
        same_functions(there, ours)
        assert sum(line[3] == "-" for line in ours) > 100


# ---- the proxy ----------------------------------------------------------------------------------


def behind_proxy(fake: Fake, container: Container, **more: str) -> dict[str, str]:
    """The environment of a client whose libcuda.so.1 is our proxy; no LD_PRELOAD."""
    found = {**fake.environment(), **container.environment(preload=False), **more}
    found["ALNAIR_VGPU_DRIVER"] = str(build.LIBRARIES / DRIVER)
    return {**found, "LD_LIBRARY_PATH": str(PROXY)}


def test_the_proxy_exports_all_of_the_driver_and_limits_without_preload(fake: Fake) -> None:
    with Container(fake.uuid(), memory_limit=2 * GIB) as container:
        environment = behind_proxy(fake, container)
        names = [(row["name"], 0, 0) for row in symbols()]
        there = [line[4] for line in ask(fake.environment(), "dlsym", names) if line[3] != "-"]
        assert set(there) <= {line[4] for line in ask(environment, "dlsym", names)}
        hold = build.client("hold", "-l:libcuda.so.1")
        assert build.checked(hold, 1024, environment=environment) == "held\n"
        assert build.checked(hold, 2048, environment=environment) == "2\n"


@pytest.mark.skipif(bool(build.SANITIZE), reason="sanitizers refuse RTLD_DEEPBIND")
def test_deepbind_and_dlmopen_do_not_pass_the_proxy(fake: Fake) -> None:
    with Container(fake.uuid(), memory_limit=2 * GIB) as container:
        requests = [("cuMemAlloc_v2", 0, 0), ("cuMemAlloc", 13000, 0)]
        for style in ("dlsym", "proc2"):
            for line in ask(behind_proxy(fake, container), style, requests[:1]):
                assert line[3] in {DRIVER, "-"}
        program = build.client("deepbind")
        said = build.checked(program, 2048, environment=behind_proxy(fake, container))
        assert said == "deepbind 2\ndlmopen 2\n"


def test_preload_and_proxy_together_charge_once(fake: Fake) -> None:
    with Container(fake.uuid(), memory_limit=2 * GIB) as container:
        environment = behind_proxy(fake, container, LD_PRELOAD=str(build.INTERPOSER))
        hold = build.client("hold", "-l:libcuda.so.1")
        with build.start(hold, 512, environment=environment) as process:
            assert process.stdout
            assert process.stdout.readline() == "held\n"
            assert len(container.slots()) == 1
            assert container.total("held") == 2 * (512 << 20)  # a context of unknown size, and this
            process.communicate()


# ---- as a node mounts it ------------------------------------------------------------------------


@pytest.mark.skipif(bool(build.SANITIZE), reason="all programs here would need the sanitizer")
@pytest.mark.parametrize("way", ["ld.so.preload", "proxy", "both"])
def test_mounts_limit_a_program_whose_environment_says_nothing(
    fake: Fake, container: Callable[..., Container], tmp_path: Path, way: str
) -> None:
    made = container(memory_limit=2 * GIB)
    hold = build.client("hold", "-l:libcuda.so.1")
    driver = PROXY if way != "ld.so.preload" else build.LIBRARIES
    steps = [
        "mount -t tmpfs none /run",
        "mkdir -p /run/alnair/vgpu /run/alnair/driver",
        f"mount --bind {made.folder} /run/alnair/vgpu",
        "mount -o remount,bind,ro /run/alnair/vgpu",
        "mount --bind /run/alnair/vgpu/counters /run/alnair/vgpu/counters",
        "mount -o remount,bind,rw /run/alnair/vgpu/counters",
        f"cp {build.LIBRARIES}/libcuda.so.1 {build.LIBRARIES}/libfakegpu.so /run/alnair/driver/",
    ]
    if way != "proxy":
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc" / "ld.so.preload").write_text(f"{build.INTERPOSER}\n")
        steps += [
            f"cp /etc/ld.so.cache {tmp_path}/etc/",
            f"mount --bind {tmp_path}/etc /etc",
            "mount -o remount,bind,ro /etc",
        ]
    environment = {**fake.environment(), "LD_LIBRARY_PATH": str(driver)}
    for mib, says in ((1024, "held\n"), (2048, "2\n")):
        script = " && ".join([*steps, f"exec {hold} {mib}"])
        done = build.run("unshare", "-m", "sh", "-c", script, environment=environment)
        if "unshare" in done.stderr or "mount:" in done.stderr:
            pytest.skip(f"mounts cannot be made here: {done.stderr}")
        assert (done.stdout, done.stderr) == (says, "")


def test_what_is_resolved_is_traced_where_asked_for_and_nothing_is_limited(fake: Fake) -> None:
    requests = [("cuMemAlloc", 3020, 0), ("cuCtxGetDevice", 2000, 0), ("cuNothing", 3020, 0)]
    lines = "".join(f"{name} {version} {flags}\n" for name, version, flags in requests)

    def traced(**environment: str) -> list[str]:
        its = {**fake.environment(), "LD_PRELOAD": str(build.INTERPOSER), **environment}
        with build.start(build.client("resolve"), "proc2", environment=its) as process:
            _, said = process.communicate(lines)
        return [line.partition("resolve ")[2] for line in said.splitlines() if "resolve " in line]

    told = traced(ALNAIR_VGPU_TRACE="1")
    assert [line for line in told if line.split()[0] in {name for name, *_ in requests}] == [
        "cuMemAlloc 3020 0: hooked",
        "cuCtxGetDevice 2000 0: passed",
        "cuNothing 3020 0: not found",
    ]
    assert traced() == traced(ALNAIR_VGPU_TRACE="0") == []
    with Container(fake.uuid(), memory_limit=GIB) as container:
        assert traced(ALNAIR_VGPU_TRACE="1", **container.environment()) == []
