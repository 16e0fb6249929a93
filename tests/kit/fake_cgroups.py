"""Folders as the kernel shows them: `/proc` and control groups of pods, v1 or v2."""

from pathlib import Path

UID = "6b2b1f5c-9c3e-4d7f-8a51-0f6f3f0c9e11"
ID = "3f4b8c1d" * 8
OTHER = "0a1b2c3d" * 8

V2 = {
    "cpu.stat": (
        "usage_usec 2000000\nuser_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 50\n"
    ),
    "memory.current": "1000000\n",
    "memory.stat": "anon 5\ninactive_file 200000\n",
    "memory.peak": "1500000\n",
    "memory.events": "low 0\noom 3\noom_kill 2\n",
    "io.stat": "8:0 rbytes=100 wbytes=7 rios=1\n8:16 rbytes=11 wbytes=3 rios=1\n",
    "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=70\nfull avg10=0.00 total=9\n",
    "memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=71\n",
    "io.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=72\n",
}
V1 = {
    "cpuacct": {"cpuacct.usage": "2000000000\n"},
    "cpu": {"cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 50000\n"},
    "memory": {
        "memory.usage_in_bytes": "1000000\n",
        "memory.stat": "inactive_file 1\ntotal_inactive_file 200000\n",
        "memory.max_usage_in_bytes": "1500000\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    },
    "blkio": {
        "blkio.throttle.io_service_bytes_recursive": (
            "8:0 Read 100\n8:0 Write 7\n8:0 Total 107\n8:16 Read 11\n8:16 Write 3\nTotal 121\n"
        )
    },
}


class FakeCgroups:
    """A machine in a folder.

    Args:
        folder: Of its own.
        version: 1 or 2.
    """

    def __init__(self, folder: Path, version: int = 2) -> None:
        self.proc = folder / "proc"
        self.root = folder / "cgroup"
        self.version = version
        lines = []
        for name in V1 if version == 1 else ("",):
            point = self.root / name
            point.mkdir(parents=True)
            kind = f"cgroup cgroup rw,{name}" if name else "cgroup2 cgroup rw"
            lines.append(f"30 23 0:26 / {point} rw shared:9 - {kind}\n")
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "self" / "mountinfo").write_text("".join(lines))
        self.process(1, "/", namespace="host")

    def container(self, pod: str = UID, container: str = ID, below: str = "kubepods") -> str:
        """Make the files of a container; return its path."""
        path = f"/{below}/pod{pod}/{container}"
        for name, files in V1.items() if self.version == 1 else (("", V2),):
            folder = self.root / name / path[1:]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup.procs").write_text("")
            for file, text in files.items():
                (folder / file).write_text(text)
        return path

    def write(self, path: str, file: str, text: str, controller: str = "") -> None:
        """Let a file of a group say something else."""
        (self.root / controller / path[1:] / file).write_text(text)

    def process(self, pid: int, path: str, *, namespace: str = "", text: str = "") -> None:
        """Make a process in a group, with a network."""
        folder = self.proc / str(pid)
        (folder / "ns").mkdir(parents=True, exist_ok=True)
        (folder / "net").mkdir(exist_ok=True)
        names = V1 if self.version == 1 else ("",)
        lines = (f"{n}:{name}:{path}\n" for n, name in enumerate(names))
        (folder / "cgroup").write_text("".join(lines))
        networks = self.proc / "networks"
        networks.mkdir(exist_ok=True)
        (networks / (namespace or str(pid))).touch()
        (folder / "ns" / "net").unlink(missing_ok=True)
        (folder / "ns" / "net").symlink_to(networks / (namespace or str(pid)))
        (folder / "net" / "dev").write_text(text)
        for name in names if pid != 1 else ():
            procs = self.root / name / path[1:] / "cgroup.procs"
            procs.write_text(f"{procs.read_text()}{pid}\n")
