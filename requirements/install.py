"""Makes `.venv` from the lock, or does nothing when that is done: `make install` runs this.

Only the standard library is used, as nothing else is there yet. The wheels are kept in the cache
folder, so that the next clone installs in seconds and without the network. What was installed is
told by a stamp, which is written last: an interrupted installation is begun anew.

    python3 requirements/install.py [bench]

`bench` adds the packages that only the benchmarks need.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PIP = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]


def cache() -> Path:
    """The folder for wheels; the same rule as `alnair.local.layout.cache_folder`."""
    if given := os.environ.get("ALNAIR_CACHE"):
        return Path(given).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "alnair"


def digest(*parts: str | Path) -> str:
    """Identify texts and the contents of files; this Python is always a part."""
    sha = hashlib.sha256(f"{sys.version} {sys.base_prefix} {os.uname().machine}".encode())
    for part in parts:
        sha.update(part.read_bytes() if isinstance(part, Path) else part.encode())
    return sha.hexdigest()[:20]


def has(stamp: Path, key: str) -> bool:
    """Whether the stamp is there with this key."""
    return stamp.is_file() and stamp.read_text() == key


def make_venv() -> None:
    """Make an empty virtual environment in place of what is there."""
    if VENV.is_symlink():
        # It would be emptied: it may be another clone's, which is in use.
        sys.exit(f"{VENV} is a link to {VENV.resolve()}: remove the link, then run this again")
    if importlib.util.find_spec("ensurepip") is None:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        sys.exit(
            f"{sys.executable} cannot make virtual environments, its module ensurepip is missing:"
            f" install it (Debian, Ubuntu: apt-get install {package}),"
            " or use another Python: make PYTHON=/path/to/python3 install"
        )
    # Started from inside a virtual environment, perhaps from this very one: go to what is below it.
    python = getattr(sys, "_base_executable", None) or sys.executable
    run(
        [python, "-m", "venv", "--clear", str(VENV)],
        "the virtual environment cannot be made: see above",
    )


def install(lock: Path) -> None:
    """Install the packages of a lock, whose hashes pip verifies, from the folder of wheels."""
    wheels = cache() / "wheels" / f"{lock.stem}-{digest(lock)}"
    locked = ["--no-deps", "--require-hashes", "--requirement", str(lock)]
    if not wheels.is_dir():
        print(f"fetching the packages of {lock.relative_to(ROOT)}", file=sys.stderr)
        partial = wheels.with_name(f"{wheels.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        fetch = ["download", "--only-binary", ":all:", "--dest", str(partial)]
        run(
            [*PIP, *fetch, *locked],
            "packages cannot be fetched: check the network and pip's index settings",
        )
        partial.rename(wheels)
    print(f"installing them into {VENV.name}", file=sys.stderr)
    offline = ["--no-index", "--find-links", str(wheels)]
    # Python compiles a module when it is first imported; most of these never are.
    run(
        [*PIP, "install", "--no-compile", *offline, *locked],
        f"packages cannot be installed: remove {wheels}",
    )


def run(command: list[str], problem: str) -> None:
    """Run a command, or end with a sentence; the command has said the details."""
    try:
        subprocess.run(command, check=True, cwd=ROOT, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"{problem}, then run the same command again")


def main(extras: list[str]) -> None:
    """Install what is not there yet."""
    lock = ROOT / "requirements" / "dev.txt"
    # Scripts in the environment name it by its path, so a copy elsewhere is another one.
    key = digest(lock, ROOT / "pyproject.toml", Path(__file__), str(VENV))
    stamp = VENV / ".alnair-dev"
    # The link ends nowhere when the Python below was removed or replaced.
    if not has(stamp, key) or not (VENV / "bin" / "python").exists():
        make_venv()
        install(lock)
        editable = ["install", "--no-index", "--no-deps", "--no-build-isolation", "--editable", "."]
        run([*PIP, *editable], "alnair itself cannot be installed")
        stamp.write_text(key)
    for extra in extras:
        lock = ROOT / "requirements" / f"{extra}.txt"
        key, stamp = digest(lock), VENV / f".alnair-{extra}"
        if not has(stamp, key):
            install(lock)
            stamp.write_text(key)


if __name__ == "__main__":
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "install.lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        main(sys.argv[1:])
