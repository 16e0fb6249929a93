"""A PostgreSQL of one test: Debian's, in a folder of its own, on a socket there."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

_FOLDERS = Path("/usr/lib/postgresql")
MISSING = (
    "PostgreSQL is not installed"
    " (Debian, Ubuntu: apt-get install --no-install-recommends postgresql)"
)


def programs() -> Path | None:
    """Where `initdb` and `postgres` are; None if nowhere."""
    found = sorted(_FOLDERS.glob("*/bin/initdb")) or [
        Path(path) for path in [shutil.which("initdb")] if path
    ]
    return found[-1].parent if found else None


class Postgres:
    """A server that can be killed and started again; it refuses to run as root.

    Args:
        address: Of this machine, at which others reach it by a password; empty: nobody does.
    """

    #: Of its one user.
    password = "of-the-history"

    def __init__(self, address: str = "") -> None:
        bin_folder = programs()
        if bin_folder is None:
            pytest.skip(MISSING)
        self._bin = bin_folder
        self.folder = Path(tempfile.mkdtemp(prefix="alnair-pg-"))
        self._user = None
        if os.geteuid() == 0:
            names = {one.pw_name for one in pwd.getpwall()}
            self._user = "postgres" if "postgres" in names else "nobody"
            shutil.chown(self.folder, self._user)
        self._data = self.folder / "data"
        flags = ["--username=alnair", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        self._run("initdb", "-D", str(self._data), *flags)
        self._address = address
        if address:
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all all scram-sha-256\n")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return self.url_of("postgres")

    def make_database(self, name: str) -> None:
        """Make an empty database."""
        self._run("createdb", "-h", str(self.folder), "-U", "alnair", name)

    def url_of(self, name: str) -> str:
        """Where a database is."""
        return f"postgresql://alnair@/{name}?host={self.folder}"

    def open_to_others(self) -> str:
        """Where a pod or another machine finds it, once it runs."""
        words = f"ALTER USER alnair PASSWORD '{self.password}'"
        self._run("psql", "-h", str(self.folder), "-U", "alnair", "-c", words, "postgres")
        return f"postgresql://alnair:{self.password}@{self._address}/postgres"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._bin / program, *arguments],
            check=True,
            user=self._user,
            cwd=self.folder,
            capture_output=True,
        )

    def start(self) -> None:
        """Start it, and wait until it answers.

        It is started again where children of one that was killed have not ended yet.
        """
        deadline = time.monotonic() + 30
        ready = [self._bin / "pg_isready", "-q", "-h", self.folder]
        self.process = self._spawn()
        while subprocess.run(ready, check=False, cwd=self.folder).returncode:
            if time.monotonic() > deadline:
                pytest.fail((self.folder / "log").read_text()[-2000:])
            if self.process.poll() is not None:
                self.process = self._spawn()
            time.sleep(0.05)

    def _spawn(self) -> "subprocess.Popen[bytes]":
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [
                    *(self._bin / "postgres", "-D", self._data, "-k", self.folder),
                    *("-c", f"listen_addresses={self._address}"),
                    *("-c", "shared_buffers=16MB"),
                ],
                user=self._user,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """Kill it, and all its children."""
        assert self.process is not None
        # Children end by themselves when the first process is gone.
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=20)

    def close(self) -> None:
        """End it, however it is, and remove its folder."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=20)
        shutil.rmtree(self.folder, ignore_errors=True)
