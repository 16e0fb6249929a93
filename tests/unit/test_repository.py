"""The rules of the repository that no linter knows; CONTRIBUTING.md gives their reasons."""

import ast
import os
import re
import runpy
import shutil
import statistics
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from alnair.local.layout import cache_folder
from alnair.scheduler.profiles import registry

ROOT = Path(__file__).resolve().parents[2]
#: What a tree without git may hold beside its sources.
NOT_SOURCES = {".venv", "__pycache__", "build", "dist", "shared"}
MOST_LINES = 500
MEDIAN_LINES = 150
BAGS = {"utils", "util", "common", "helpers", "helper", "manager", "misc"}
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


@cache
def sources() -> tuple[Path, ...]:
    """All files that git knows, or all that look like sources where there is no git."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(git, capture_output=True, check=True, text=True).stdout.split("\0")
        found = [ROOT / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        found = []
        for folder, below, files in os.walk(ROOT):
            below[:] = [name for name in below if not _is_derived(name)]
            found += [Path(folder, name) for name in files]
    return tuple(sorted(path for path in found if path.is_file()))


def _is_derived(folder: str) -> bool:
    return folder in NOT_SOURCES or folder.endswith(("_cache", ".egg-info"))


def python_files() -> Iterator[Path]:
    return (path for path in sources() if path.suffix == ".py")


def texts() -> Iterator[tuple[Path, str]]:
    for path in sources():
        try:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # compressed data


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    modules = [path for path in sources() if path.suffix in {".py", ".c", ".h"}]
    lengths = {path: len(path.read_text().splitlines()) for path in modules}
    assert not {p.name: n for p, n in lengths.items() if n > MOST_LINES}


def test_half_of_all_modules_are_read_on_a_few_screens() -> None:
    package = ROOT / "src" / "alnair"
    lengths = [len(p.read_text().splitlines()) for p in python_files() if package in p.parents]
    assert statistics.median(lengths) < MEDIAN_LINES


def test_no_module_is_a_bag_of_this_and_that() -> None:
    assert not [p for p in python_files() if p.stem in BAGS or p.parent.name in BAGS]


def test_a_unit_test_lies_and_is_named_like_its_subject() -> None:
    """`tests/unit/kube/test_watch.py` is of `kube/watch.py`; `_and_more` may follow the name.

    What is of several modules of a folder may have the folder's name.
    """
    unit = ROOT / "tests" / "unit"
    tests = [p for p in python_files() if unit in p.parents and p.name.startswith("test_")]
    assert len(tests) > 100
    assert not [t for t in tests if t.parent != unit and not _is_like_its_subject(t, unit)]


def _is_like_its_subject(test: Path, unit: Path) -> bool:
    folder = test.parent.relative_to(unit)
    subject = ROOT / folder if folder.parts[0] == "benchmarks" else ROOT / "src/alnair" / folder
    names = {folder.name, *(p.stem for p in subject.glob("[!_]*"))}
    stem = test.stem.removeprefix("test_")
    return subject.is_dir() and any(f"{stem}_".startswith(f"{name}_") for name in names)


def test_every_package_opens_with_what_it_is_for() -> None:
    packages = [p for p in python_files() if p.name == "__init__.py" and "src" in p.parts]
    assert packages
    assert not [p for p in packages if not ast.get_docstring(ast.parse(p.read_text()))]


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    # Put together here, or this file would be its own first finding.
    pattern = re.compile(r"(?<![\w./-])/(?:wo" + r"rk|ro" + r"ot)/[\w.]")
    assert not [(str(p), m[0]) for p, text in texts() if (m := pattern.search(text))]


def test_no_file_names_the_host_of_a_package_registry() -> None:
    hosts = ("pypi" + ".org", "python" + "hosted.org", "proxy.golang" + ".org", "npmjs" + ".org")
    assert not [(str(p), host) for p, text in texts() for host in hosts if host in text]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_pins_and_hashes_all_and_names_no_index(lock: Path) -> None:
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
    assert not [line for line in lines if "://" in line or line.startswith("-")]
    packages = [line for line in lines if not line.startswith(" ")]
    assert len(packages) > 5
    assert not [line for line in packages if "==" not in line or not line.endswith("\\")]


def test_the_layers_have_no_list_of_exceptions() -> None:
    contracts = _pyproject()["tool"]["importlinter"]["contracts"]
    assert {c["type"] for c in contracts} == {"layers", "forbidden", "independence"}
    assert not [c["name"] for c in contracts if "ignore_imports" in c]


def test_nothing_but_profiles_knows_a_plugin_by_its_name() -> None:
    scheduler = ROOT / "src" / "alnair" / "scheduler"
    may = {scheduler / "plugins", scheduler / "published", scheduler / "profiles.py"}
    plugins = set(registry())
    found = [
        (str(path.relative_to(ROOT)), node.lineno, node.value)
        for path in python_files()
        if path.is_relative_to(ROOT / "src") and not may & {path, *path.parents}
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in plugins
    ]
    assert not found, "ask for an attribute, or an extension point"


def test_warnings_are_errors() -> None:
    assert _pyproject()["tool"]["pytest"]["ini_options"]["filterwarnings"] == ["error"]


def test_decision_records_are_numbered_without_gaps() -> None:
    names = sorted(p.name for p in (ROOT / "docs" / "decisions").glob("*.md"))
    records = [name for name in names if name != "README.md"]
    assert [name[:5] for name in records] == [f"{i:04d}-" for i in range(len(records))]


def test_the_licence_is_there() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert _pyproject()["project"]["license"] == "Apache-2.0"


def test_every_data_set_tells_its_origin() -> None:
    folders = {p.parent for p in sources() if p.parent.parent == ROOT / "src/alnair/data"}
    assert not [f for f in folders if not (f / "ORIGIN.md").is_file()]


def test_every_make_target_says_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY: (\S+)$", makefile, re.MULTILINE)
    assert len(targets) > 5
    assert not [t for t in targets if not re.search(rf"^{t}:.* ## \S", makefile, re.MULTILINE)]


def test_make_runs_all_benchmarks_and_no_other() -> None:
    makefile = (ROOT / "Makefile").read_text()
    line = re.search(r"^BENCHMARKS := (.*)$", makefile, re.MULTILINE)
    assert line
    suite = (ROOT / "benchmarks" / "placement_suite.py").read_text()
    of_placement = ["placement_suite", *re.findall(r'"(placement\w*)\.py"', suite)]
    scripts = {p for p in python_files() if p.parent == ROOT / "benchmarks"}
    assert {*line[1].split(), *of_placement} == {p.stem for p in scripts}
    in_folders = {p for p in python_files() if ROOT / "benchmarks" in p.parents}
    assert {p for p in in_folders if "__main__" in p.read_text()} == scripts


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"ALNAIR_CACHE": "/somewhere/else"},
        {"ALNAIR_CACHE": "~/there"},
        {"XDG_CACHE_HOME": "/caches"},
        {"XDG_CACHE_HOME": "not/absolute"},
    ],
)
def test_the_installer_keeps_its_wheels_where_the_programs_are_kept(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ALNAIR_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    install = runpy.run_path(str(ROOT / "requirements" / "install.py"))
    assert install["cache"]() == cache_folder(os.environ)


def test_the_installer_does_not_empty_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "clone" / "requirements").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").touch()
    (tmp_path / "clone" / ".venv").symlink_to(tmp_path / "other")
    script = tmp_path / "clone" / "requirements" / "install.py"
    script.write_text((ROOT / "requirements" / "install.py").read_text())
    make_venv = runpy.run_path(str(script))["make_venv"]
    with pytest.raises(SystemExit, match=r"\.venv is a link to .*other: remove the link"):
        make_venv()
    assert (tmp_path / "other" / "precious").exists()


@pytest.mark.parametrize(
    ("said", "status", "expected"),
    [
        ("== 5 passed in 0.10s ==", 0, 0),
        ("===== 7 passed, 1 skipped in 65.12s (0:01:05) =====", 0, 0),
        ("== 1 failed, 4 passed in 0.10s ==", 2, 2),
        (r"\0\n== 1 failed, 4 passed in 0.10s ==", 2, 2),
        ("== no tests ran in 0.01s ==", 0, 1),
        ("== 3 skipped in 0.01s ==", 0, 1),
        ("ruff found an error", 2, 2),
        ("", 0, 1),
    ],
)
def test_ci_ends_with_the_closing_line_and_passes_only_if_tests_passed(
    tmp_path: Path, said: str, status: int, expected: int
) -> None:
    make = tmp_path / "make"
    make.write_text(f"#!/bin/sh\nprintf '{said}\\n'\necho 'make: done' >&2\nexit {status}\n")
    make.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    # Not in this clone: it would make sources older than what was built of them before.
    copied = shutil.copytree(ROOT / ".ci", tmp_path / "clone" / ".ci")
    run = subprocess.run(
        [copied / "run"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert run.returncode == expected
    last = run.stdout.splitlines()[-1]
    closing = said.rpartition("\\n")[2]
    assert last == (closing if closing.startswith("==") else "the tests were not reached")


def test_ci_takes_nothing_that_was_built_of_other_sources(tmp_path: Path) -> None:
    """Where CI's clone is used again: it had libraries of the commit before, and blamed the new."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    source = tmp_path / "source"
    built = "build/text: source\n\tmkdir -p build; cp source build/text\n"
    (tmp_path / "Makefile").write_text(f"test: build/text\n\tcat build/text\n{built}")
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for count in (1, 2):
        source.write_text(said := f"== {count} passed in 0.01s ==\n")
        subprocess.run([*git, "add", "source"], check=True)
        run = subprocess.run(
            [tmp_path / ".ci" / "run"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        )
        assert run.stdout.endswith(said)


def _pyproject() -> dict[str, dict]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
