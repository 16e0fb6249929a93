"""Installs the packages of Debian and Ubuntu that tests need and this machine lacks.

`make programs` runs this, and so does `make test`: without them, tests of a real node and of
images are skipped.
Only root with apt-get does it, and nobody where `ALNAIR_APT=no`. It never fails: who needs what is
still missing says so.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from alnair.local.own_images import requirements as of_images
from alnair.local.real_node import requirements

#: Asks every installed package whether it may start a daemon; 101 says no (invoke-rc.d(8)).
POLICY = Path("/usr/sbin/policy-rc.d")
_NO_DAEMON = "#!/bin/sh\n# Of Alnair's `make programs`, which removes it again.\nexit 101\n"
#: Packages only recommend these, and recommended ones are left out: Prometheus' has a daemon more.
_BESIDE = {"gcc": ["libc6-dev"]}
#: Packages with a daemon that nobody asked for.
_DAEMONS = ("postgresql", "prometheus")
#: The network may be slow, or there may be none.
_SECONDS = 180
_OPTIONS = (
    *("-qq", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"),
    *("-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20"),
)
Run = Callable[[Sequence[str], float | None], str]


def wanted(environ: Mapping[str, str], which: Callable[[str], str | None]) -> list[str]:
    """The packages that this machine lacks, sorted."""
    lacking = requirements.missing(builds=requirements.builds(environ), which=which)
    lacking |= of_images.missing(which)
    if not which("promtool"):
        lacking["promtool"] = "prometheus"
    if not which("pg_ctlcluster"):
        lacking["postgres"] = "postgresql"
    packages = {*lacking.values()}
    return sorted(packages.union(*(_BESIDE.get(one, []) for one in packages)))


def refuses(environ: Mapping[str, str], user: int, which: Callable[[str], str | None]) -> bool:
    """Whether nothing may or can be installed here."""
    return environ.get("ALNAIR_APT") == "no" or user != 0 or not which("apt-get")


@contextmanager
def no_daemons(policy: Path = POLICY) -> Iterator[None]:
    """What is installed meanwhile starts no daemon; a policy of the machine's own stays."""
    # One of ours was left by a run that was killed.
    is_ours = not policy.exists() or policy.read_text() == _NO_DAEMON
    if is_ours:
        policy.write_text(_NO_DAEMON)
        policy.chmod(0o755)
    try:
        yield
    finally:
        if is_ours:
            policy.unlink(missing_ok=True)


def run(command: Sequence[str], seconds: float | None) -> str:
    """Run a command; return the last line of what it complains about, "" where it succeeded."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s"
    except OSError as error:
        return str(error)
    said = (done.stderr or done.stdout).strip().splitlines()
    return (said or ["it failed"])[-1] if done.returncode else ""


def install(packages: Sequence[str], run: Run = run, policy: Path = POLICY) -> dict[str, str]:
    """Install packages, one by one; return those that failed, with the reason."""
    failed, get, is_fresh = {}, ("apt-get", *_OPTIONS), False
    with no_daemons(policy):
        for package in packages:
            fetch = (*get, "--download-only", "install", package)
            said = run(fetch, _SECONDS)
            if said and not is_fresh:
                # On a fresh machine there are no lists of packages yet.
                is_fresh = True
                if problem := run((*get, "update"), _SECONDS):
                    return {**failed, package: problem}
                said = run(fetch, _SECONDS)
            # What has begun to be set up is not cut off by a time limit.
            said = said or run((*get, "--no-download", "install", package), None)
            if said:
                failed[package] = said
            elif package in _DAEMONS:
                # Only its programs are wanted: no daemon by the machine's policy, nor at its
                # next start.
                run(("service", package, "stop"), _SECONDS)
                run(("update-rc.d", package, "disable"), _SECONDS)
    return failed


def main() -> None:
    """Install what is missing, and say so in a line."""
    if refuses(os.environ, os.geteuid(), shutil.which):
        return
    packages = wanted(os.environ, shutil.which)
    if not packages:
        return
    print(
        f"installing {' '.join(packages)}, which tests need (apt-get; ALNAIR_APT=no leaves it out)",
        file=sys.stderr,
        flush=True,
    )
    try:
        failed = install(packages)
    except OSError as error:
        failed = {packages[0]: str(error)}
    for package, said in failed.items():
        print(f"{package} is not installed, and some tests are skipped: {said}", file=sys.stderr)


if __name__ == "__main__":
    main()
