"""Plugins of other packages: the example of the tutorial, and packages that are broken."""

import logging
import runpy
import tomllib
from pathlib import Path

import pytest

from alnair import testing
from alnair.configuration import scheduler_file as conf
from alnair.configuration.profile_assembly import assemble
from kit.world import World

EXAMPLE = Path(__file__).parents[3] / "examples" / "02-first-plugin"


def install(folder: Path, package: str, points: dict[str, str], **modules: str) -> Path:
    """Lay a package out as an installer does: its modules, and what it announces."""
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {target}\n" for name, target in points.items())
    (info / "entry_points.txt").write_text(f"[alnair.plugins]\n{lines}")
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code)
    return folder


def configured(*plugins: str) -> conf.Configuration:
    enabled = tuple(conf.EnabledPlugin(name) for name in plugins)
    profile = conf.ProfileConfiguration("mine", plugins=conf.PluginSet(enabled=enabled))
    return conf.Configuration(profiles=(profile,))


def refused(*plugins: str) -> str:
    with pytest.raises(conf.ConfigurationError) as raised:
        assemble(configured(*plugins), "c.yaml")
    return str(raised.value)


def test_the_example_works_as_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["alnair.plugins"]
    monkeypatch.syspath_prepend(install(tmp_path, project["name"], points))
    monkeypatch.syspath_prepend(EXAMPLE / "src")
    assembly = assemble(conf.load(EXAMPLE / "scheduler.yaml"), "scheduler.yaml")
    world = World(check=False)
    world.engine = type(world.engine)(assembly.profiles())
    for name, version in (("a", "470"), ("b", "550"), ("c", "570")):
        world.put(testing.node(name, gpus=1, labels={"example.com/gpu-driver": version}))
    limits = {"nvidia.com/gpu": "1"}
    pods = [testing.pod(f"p{i}", limits=limits, schedulerName="alnair-scheduler") for i in range(3)]
    world.create(*pods)
    world.settle(0.0)
    assert sorted(world.where("p0", "p1", "p2")) == ["", "b", "c"]
    (report,) = [r for r in world.reports if r.kind == "FailedScheduling"]
    assert "1 node(s) have a GPU driver older than 535" in report.message


def test_the_example_passes_its_own_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE / "src")
    found = runpy.run_path(str(EXAMPLE / "tests" / "test_gpu_driver.py"))
    tests = [test for name, test in found.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test()


def test_a_package_that_is_not_configured_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "raise RuntimeError('imported')"
    monkeypatch.syspath_prepend(install(tmp_path, "acme", {"Broken": "broken_a:X"}, broken_a=code))
    assert assemble(conf.Configuration(), "c.yaml").profiles()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import nothing_like_this", "cannot be imported from m_{}:X: ModuleNotFoundError: No"),
        ("raise SystemError('no GPU')", "cannot be imported from m_{}:X: SystemError: no GPU;"),
        ("class Y: pass", "cannot be imported from m_{}:X: AttributeError:"),
        ("class X:\n name = 'Other'", "m_{}:X has the attribute name = 'Other': it must be"),
        ("class X:\n name = 'Plug'", "has no method of an extension point, such as filter"),
        (
            "class X:\n name = 'Plug'\n def __init__(self): raise OSError('gone')",
            "cannot be made: OSError: gone; mend the package",
        ),
    ],
)
def test_a_broken_package_is_named_with_what_to_do(
    code: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = abs(hash(code))
    module = f"m_{number}"
    folder = install(tmp_path, "acme-plugins", {"Plug": f"{module}:X"}, **{module: code})
    monkeypatch.syspath_prepend(folder)
    said = refused("Plug")
    start = "c.yaml: profiles[0].plugins.enabled[0].name: plugin Plug of acme-plugins 1.0"
    assert said.startswith(start)
    assert problem.format(number) in said


def test_a_plugin_of_two_packages_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("one", "two"):
        monkeypatch.syspath_prepend(install(tmp_path / package, package, {"Twice": "m:X"}))
    assert "plugin Twice is announced by several packages (one 1.0, two 1.0)" in refused("Twice")


def test_an_error_at_work_names_the_package_and_harms_only_its_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    code = "class X:\n name = 'Late'\n def filter(self, spec, cluster): raise KeyError('rack')"
    monkeypatch.syspath_prepend(install(tmp_path, "acme", {"Late": "late_m:X"}, late_m=code))
    wanted = conf.Configuration(
        profiles=(*configured("Late").profiles, conf.ProfileConfiguration("alnair-scheduler"))
    )
    world = World(testing.node("n"), check=False)
    world.engine = type(world.engine)(assemble(wanted, "c.yaml").profiles())
    theirs = testing.pod("theirs", schedulerName="mine")
    world.create(theirs, testing.pod("ours", schedulerName="alnair-scheduler"))
    world.put(testing.node("n"))
    with caplog.at_level(logging.ERROR):
        world.settle(0.0)
    assert world.where("theirs", "ours") == ["", "n"]
    assert caplog.messages == ["plugin Late of acme 1.0 failed in filter: KeyError: 'rack'"]
