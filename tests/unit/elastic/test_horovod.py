"""Workers of Horovod wait with an ssh server, as whoever they are."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from alnair.elastic.child_names import child_names
from alnair.elastic.horovod import worker_template
from alnair.kube.objects.training_jobs import ElasticHorovodJobWire, project_training_job
from kit import training_jobs as jobs


def program(folder: Path, name: str, text: str) -> None:
    made = folder / name
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)


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
    command = worker_template(job, child_names(job))["spec"]["containers"][0]["command"]
    given = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "A": "b c"}
    subprocess.run(command, env=given, check=True)
    said = log.read_text()
    assert ("mkdir -p /run/sshd" in said) is asks_pam
    assert ("-o UsePAM=no" in said) is not asks_pam
    assert "sshd -D -e -p 12345" in said
    assert "A=b c\n" in (tmp_path / ".ssh" / "environment").read_text()
