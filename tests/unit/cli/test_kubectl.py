"""`alnair kubectl`: whose words these are, and what is said where there is no kubectl."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = '#!/bin/sh\necho "$KUBECONFIG" "$@"\nexit 7\n'


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """The kubeconfig of a local cluster `two`."""
    path = tmp_path / "clusters" / "two" / "admin.kubeconfig"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def kubectl(
    tmp_path: Path, *words: str, kubeconfig: str = "not"
) -> subprocess.CompletedProcess[str]:
    """Run it where only what is in `tmp_path` is on PATH."""
    state = str(tmp_path / "clusters")
    environment = {**os.environ, "PATH": str(tmp_path), "ALNAIR_STATE": state}
    environment["KUBECONFIG"] = kubeconfig
    command = [sys.executable, "-m", "alnair", "kubectl", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_all_words_are_kubectls_and_it_ends_as_kubectl_does(tmp_path: Path, cluster: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text(SCRIPT)
    program.chmod(0o755)
    words = ["get", "pods", "-n", "openb", "--name", "x", "--help", "-o", "json"]
    done = kubectl(tmp_path, "--name", "two", *words)
    assert (done.returncode, done.stdout) == (7, f"{cluster} {' '.join(words)}\n")


def test_without_a_name_it_is_the_local_cluster_of_kubeconfig(
    tmp_path: Path, cluster: Path
) -> None:
    program = tmp_path / "kubectl"
    program.write_text(SCRIPT)
    program.chmod(0o755)
    done = kubectl(tmp_path, "get", "pods", kubeconfig=str(cluster))
    assert done.stdout == f"{cluster} get pods\n"


def test_without_kubectl_it_says_which_and_how_to_use_it(tmp_path: Path, cluster: Path) -> None:
    done = kubectl(tmp_path, "--name", "two", "get", "pods")
    assert done.returncode == 1
    assert "there is no kubectl on PATH: any version from 1.35 to 1.37 works" in done.stderr
    assert f"KUBECONFIG={cluster} kubectl" in done.stderr


def test_without_the_cluster_it_says_how_to_start_it(tmp_path: Path) -> None:
    done = kubectl(tmp_path, "get", "pods")
    assert done.returncode == 1
    assert done.stderr == (
        "alnair: there is no cluster 'alnair': start it with 'alnair up --name alnair'\n"
    )
