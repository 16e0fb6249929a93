"""Building the cluster's programs from their Go modules, once per version.

An interrupt, or a kill, loses at most the package in work: the Go build cache keeps the rest, and
the next build continues there. A build is seen as done only by a rename, so half of one is never
used.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from alnair.local.components.locks import exclusive
from alnair.local.errors import LocalClusterError
from alnair.local.layout import cache_folder
from alnair.local.programs import binaries
from alnair.local.programs.versions import Module
from alnair.local.report import ProgressReport

_MARK = "ALNAIR_LOCAL_BUILD"


def build(go: Path, module: Module, environ: Mapping[str, str], report: ProgressReport) -> None:
    """Builds a module into the cache, unless that has been done meanwhile.

    Args:
        go: The `go` command.
        module: What to build.
        environ: The user's environment; Go's own settings in it (proxy, caches) hold.
        report: Told of steps and progress.

    Raises:
        LocalClusterError: The build failed; the message has its last line and the log's place.
    """
    target = binaries.built(module, environ)
    cache = cache_folder(environ)
    with exclusive(cache / "build.lock", lambda: report.step("waiting for another build to end")):
        if all((target / program).is_file() for program in module.programs):
            return
        shutil.rmtree(target, ignore_errors=True)
        work = cache / "build"
        _clean(work)
        work.mkdir(parents=True)
        log = cache / "logs" / f"build-{module.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with log.open("w") as file:
                _Build(go, module, environ, work, file.fileno(), log, report).run()
            target.parent.mkdir(parents=True, exist_ok=True)
            (work / "out").rename(target)
        finally:
            _clean(work)


class _Build:
    """One build of a module in a work folder."""

    def __init__(
        self,
        go: Path,
        module: Module,
        environ: Mapping[str, str],
        work: Path,
        output: int,
        log: Path,
        report: ProgressReport,
    ) -> None:
        self._go = go
        self._module = module
        self._work = work
        self._output = output
        self._log = log
        self._report = report
        temporary = work / "tmp"
        temporary.mkdir()
        self._environment = {
            **environ,
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "-mod=readonly",
            "GOWORK": "off",
            "GOTMPDIR": str(temporary),
            "CGO_ENABLED": "1" if module.cgo else "0",
            _MARK: str(work),
        }
        values = " ".join(f"-X {name}={value}" for name, value in module.linker_values)
        static = " -extldflags -static" if module.cgo else ""
        self._flags = [
            "-trimpath",
            "-buildvcs=false",
            *([f"-tags={','.join(module.tags)}"] if module.tags else []),
            "-ldflags",
            f"-s -w {values}".rstrip() + static,
        ]

    def run(self) -> None:
        """Leaves the programs in the folder `out`."""
        name = f"{self._module.name} {self._module.version}"
        self._report.step(f"fetching the modules of {name}")
        self._checked("mod", "download")
        self._report.step(f"building {name} (log: {self._log})")
        # `go build -v` names each package as it starts it; those in the build cache it does not
        # name.
        stale = [
            line
            for line in self._lines(
                "list", "-deps", "-f", "{{.Stale}}", *self._flags, *self._module.packages
            )
            if line == "true"
        ]
        total = len(stale) + 1
        out = self._work / "out"
        out.mkdir()
        done = 0
        packages = self._module.packages
        for _ in self._lines("build", "-v", "-o", f"{out}/", *self._flags, *packages):
            done = min(done + 1, total - 1)
            self._report.progress(f"building {name}", done, total)
        for program in self._module.programs:
            if not (out / program).exists():
                (out / program).symlink_to(self._module.name)
        version = binaries.reported_version(out / self._module.programs[0], self._module)
        if version != self._module.version:
            raise LocalClusterError(
                f"the build of {name} reports version {version}:"
                f" remove {self._work.parent} and try again"
            )
        self._report.progress(f"building {name}", total, total)

    def _checked(self, *arguments: str) -> None:
        for _ in self._lines(*arguments):
            pass

    def _lines(self, *arguments: str) -> Iterator[str]:
        """Runs `go` and gives the lines that it writes; they go to the log, too."""
        command = [str(self._go), *arguments]
        os.write(self._output, f"$ {' '.join(command)}\n".encode())
        last = ""
        with subprocess.Popen(
            command,
            cwd=binaries.SOURCES / self._module.name,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    os.write(self._output, line.encode())
                    if line.strip():
                        last = line.strip()
                        yield last
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode != 0:
            raise LocalClusterError(
                f"{self._module.name} could not be built: {last} (all of it is in {self._log})"
            )


def _clean(work: Path) -> None:
    """Ends what a killed build left running, and removes its files."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.uids().real == os.getuid() and process.environ().get(_MARK) == str(work):
                process.kill()
    shutil.rmtree(work, ignore_errors=True)
