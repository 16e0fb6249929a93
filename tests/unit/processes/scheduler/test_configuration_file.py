"""The configuration file of a running scheduler: followed, judged, and refused."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from alnair.configuration import scheduler_file as conf
from alnair.configuration.profile_assembly import assemble
from alnair.model.pair_rates import PairRates
from alnair.processes.scheduler.configuration_file import ConfigurationFile, Loaded, Source
from alnair.traces.pair_tables import save
from kit.manual_clock import running

HEAD = "apiVersion: scheduler.alnair.io/v1alpha1\nkind: SchedulerConfiguration\n"
Told = asyncio.Queue[tuple[str, str, str]]


@asynccontextmanager
async def followed(path: Path, text: str | None) -> AsyncIterator[tuple[ConfigurationFile, Told]]:
    """A file, with this text after the head if there is one, and what is told of it."""
    if text is not None:
        write(path, text)

    def read() -> Loaded:
        found = conf.load(path)
        return Loaded(found, assemble(found, str(path), path.parent))

    told: Told = asyncio.Queue()
    file = ConfigurationFile(
        Source(path, read), read(), lambda *said: told.put_nowait(said), period=0.01
    )
    async with asyncio.timeout(20), running(file.run()):
        yield file, told


def write(path: Path, text: str) -> None:
    """Replace the file at once, as the kubelet does."""
    path.with_suffix(".new").write_text(HEAD + text)
    path.with_suffix(".new").replace(path)


async def test_a_changed_profile_comes_into_force(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    async with followed(path, "seed: 1\n") as (file, told):
        write(path, "seed: 1\nprofiles: [{schedulerName: team-a}]\n")
        await file.changed.wait()
        assert [one.scheduler for one in file.in_force.assembly.profiles()] == ["team-a"]
        assert await told.get() == ("ConfigurationReloaded", f"{path} is in force", "Normal")
        assert file.problem == ""
        assert file.results == {"applied": 1}


async def test_a_bad_file_changes_nothing_and_says_all_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    async with followed(path, "profiles: [{schedulerName: team-a}]\n") as (file, told):
        before = file.in_force
        write(path, "seed: 7\nprofiles: [{schedulerName: team-a, like: nothing}]\n")
        reason, message, kind = await told.get()
        assert (reason, kind) == ("ConfigurationRefused", "Warning")
        assert "profiles[0].like: 'nothing' is no built-in profile" in message
        assert message.startswith("the former one stays in force")
        assert file.in_force is before, "and its good part is not taken over alone"
        assert not file.changed.is_set()

        write(path, "seed: 7\nprofiles: [{schedulerName: team-a}]\n")
        assert (await told.get())[0] == "ConfigurationReloaded"
        assert file.problem == ""
        assert file.results == {"refused": 1, "applied": 1}


async def test_a_file_that_is_gone_is_refused_as_a_bad_one(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    async with followed(path, "") as (file, told):
        path.unlink()
        reason, message, _ = await told.get()
        assert reason == "ConfigurationRefused"
        assert f"{path}: cannot be read: {os.strerror(2)}" in message
        write(path, "")
        assert (await told.get())[0] == "ConfigurationReloaded"
        assert not file.changed.is_set(), "nothing else is decided by"


async def test_new_pairs_come_into_force_and_bad_ones_are_refused(tmp_path: Path) -> None:
    path, pairs = tmp_path / "scheduler.yaml", tmp_path / "pairs.json"
    save(pairs, {"A100": PairRates(("a",), ((0.5,),))})
    async with followed(path, "pairs: pairs.json\n") as (file, told):
        assert file.in_force.assembly.pairs["A100"].rates == ((0.5,),)
        save(pairs, {"A100": PairRates(("a",), ((0.7,),))})
        await file.changed.wait()
        assert file.in_force.assembly.pairs["A100"].rates == ((0.7,),)
        assert (await told.get())[0] == "ConfigurationReloaded"
        file.changed.clear()

        pairs.write_text("{")
        reason, message, _ = await told.get()
        assert reason == "ConfigurationRefused"
        assert "pairs: " in message
        assert "line 1, column 2: this is no JSON" in message
        assert file.in_force.assembly.pairs["A100"].rates == ((0.7,),)
        assert not file.changed.is_set()

        save(pairs, {"A100": PairRates(("a",), ((0.9,),))})
        await file.changed.wait()
        assert file.problem == ""


async def test_what_needs_a_restart_is_named_and_the_rest_is_in_force(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    async with followed(path, "") as (file, told):
        write(path, "seed: 7\nserving: {port: 9000}\n")
        reason, message, kind = await told.get()
        assert (reason, kind) == ("ConfigurationNeedsRestart", "Warning")
        assert "restart the scheduler to change serving.port; all else is in force" in message
        assert file.in_force.configuration.seed == 7
        assert file.in_force.configuration.serving.port == 0
        assert file.problem != ""


async def test_new_logging_interrupts_no_decisions(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    async with followed(path, "logging: {level: warning}\n") as (file, told):
        write(path, "logging: {level: error}\n")
        assert (await told.get())[0] == "ConfigurationReloaded"
        assert file.in_force.configuration.logging.level == "error"
        assert not file.changed.is_set()


async def test_a_mounted_configmap_is_followed_through_its_links(tmp_path: Path) -> None:
    # The kubelet writes a new folder, and turns the link ..data to it at once.
    def project(text: str) -> None:
        (folder := tmp_path / f"..{len(text)}").mkdir()
        (folder / "scheduler.yaml").write_text(HEAD + text)
        (tmp_path / "..data_tmp").symlink_to(folder.name)
        (tmp_path / "..data_tmp").replace(tmp_path / "..data")

    project("seed: 1\n")
    path = tmp_path / "scheduler.yaml"
    path.symlink_to("..data/scheduler.yaml")
    async with followed(path, None) as (file, _):
        project("seed: 10\n")
        await file.changed.wait()
        assert file.in_force.configuration.seed == 10
