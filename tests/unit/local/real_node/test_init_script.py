"""The node's PID 1 changes nothing that others see, and says when it is done."""

import subprocess
from pathlib import Path

from alnair.local.layout import Layout
from alnair.local.real_node import init_script
from alnair.local.real_node.settings import NodeSettings

NODE = NodeSettings(Layout(Path("/it's here"), "one"), 0, 2, "h100", 16400)


def test_the_script_is_one_that_a_shell_can_read() -> None:
    script = init_script.text(NODE)
    result = subprocess.run(["/bin/sh", "-n"], input=script, text=True, check=False)
    assert result.returncode == 0


def test_mounts_are_private_before_the_first_one_is_made() -> None:
    lines = [line for line in init_script.text(NODE).splitlines() if line.startswith("mount")]
    assert lines[0] == "mount --make-rprivate /"
    assert "--propagation=private" in init_script.command(Path("/script"))


def test_what_the_kubelet_would_set_for_the_whole_machine_is_a_file_of_the_node() -> None:
    script = init_script.text(NODE)
    for name in ("vm/overcommit_memory", "kernel/panic", "kernel/keys/root_maxkeys"):
        assert f"/proc/sys/{name}\n" in script
        assert f"sysctl/{name.replace('/', '.')} /proc/sys/{name}" in script


def test_it_says_that_it_is_ready_after_all_mounts_and_then_reaps() -> None:
    lines = init_script.text(NODE).splitlines()
    ready = lines.index(f": >{init_script.READY}")
    assert not any(line.startswith("mount") for line in lines[ready:])
    assert "    wait $!" in lines[ready:]


def test_whoever_ends_the_outer_process_ends_the_node() -> None:
    command = init_script.command(Path("/script"))
    assert "--kill-child=SIGKILL" in command
    assert {"--mount", "--pid", "--net", "--ipc", "--uts", "--fork"} <= set(command)
