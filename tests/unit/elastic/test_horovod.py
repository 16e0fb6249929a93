"""Workers of Horovod wait with an ssh server, as whoever they are."""

import argparse
import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from alnair.elastic.child_names import child_names
from alnair.elastic.horovod import command, worker_template
from alnair.kube.objects.training_jobs import (
    ElasticHorovodJobWire,
    HorovodJobWire,
    project_training_job,
)
from kit import training_jobs as jobs


def program(folder: Path, name: str, text: str) -> None:
    made = folder / name
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)


@pytest.mark.parametrize(
    ("made", "kind"), [(jobs.elastic(), ElasticHorovodJobWire), (jobs.fixed(), HorovodJobWire)]
)
def test_horovodrun_leaves_the_arguments_of_the_training_alone(
    made: jobs.Manifest, kind: type[ElasticHorovodJobWire | HorovodJobWire]
) -> None:
    # Its parser looks at all words for options that may be cut short, up to the first `--`.
    trains = ["python", "train.py", "--num", "20", "--", "--host", "x"]
    parser = argparse.ArgumentParser()
    parser.add_argument("-np", "--num-proc")
    parser.add_argument("--num-nccl-streams")
    for option in ("-p", "-i", "-H", "--network-interface", "--min-np", "--max-np"):
        parser.add_argument(option)
    parser.add_argument("--gloo", action="store_true")
    parser.add_argument("--host-discovery-script")
    parser.add_argument("--blacklist-cooldown-range", nargs=2)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    wire = jobs.changed(made, "spec.launcherSpec.pythonCommand", trains)
    _, *words = command(project_training_job(msgspec.convert(wire, kind)), ["a", "b"])
    runs = parser.parse_args(words).command
    assert subprocess.check_output([*runs[:2], "echo", *runs[2:]], text=True).split() == trains


@pytest.mark.parametrize(("uid", "asks_pam"), [(0, True), (1000, False)])
def test_a_worker_serves_ssh_as_root_and_as_another_user(
    tmp_path: Path, uid: int, *, asks_pam: bool
) -> None:
    log = tmp_path / "log"
    program(tmp_path, "id", f"echo {uid}")
    program(tmp_path, "sshd", f'echo sshd "$@" >> {log}')
    # Only root can, and has to: its server would not start without the folder.
    program(tmp_path, "mkdir", f'echo mkdir "$@" >> {log}\nexec /bin/mkdir -p {tmp_path}/.ssh')
    job = project_training_job(msgspec.convert(jobs.elastic(), ElasticHorovodJobWire))
    runs = worker_template(job, child_names(job))["spec"]["containers"][0]["command"]
    given = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "A": "b c"}
    subprocess.run(runs, env=given, check=True)
    said = log.read_text()
    assert ("mkdir -p /run/sshd" in said) is asks_pam
    assert ("-o UsePAM=no" in said) is not asks_pam
    assert "sshd -D -e -p 12345" in said
    assert "A=b c\n" in (tmp_path / ".ssh" / "environment").read_text()
