"""What a question starts from: what is known of a cluster, and the changes as a user wrote them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from alnair.configuration import scheduler_file as conf
from alnair.configuration.profile_assembly import assemble
from alnair.model.nodes import Node
from alnair.scheduler.engine import events
from alnair.scheduler.framework.extension_points import Profile
from alnair.sim.inputs.workloads import PriorityClass
from alnair.sim.whatif import new_nodes as shapes
from alnair.sim.whatif.changes import Changes
from alnair.sim.whatif.submitted import Submission, copies, new_nodes, submission
from alnair.snapshots import snapshot_profiles as saved
from alnair.snapshots.snapshot import SnapshotError, check_plugins, replay_events
from alnair.traces.csv_table import TableError


class InputError(Exception):
    """Something that the user gave cannot be used; a line for each, with what to do."""


class State(msgspec.Struct, frozen=True):
    """What is known of a cluster, and how its scheduler decides."""

    known: Sequence[events.Event]
    profiles: Sequence[Profile]
    seed: int
    now: float
    priorities: Sequence[PriorityClass] = ()


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The changes as the user wrote them; see the options of the command."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    cordon: tuple[str, ...] = ()
    submit: tuple[Path, ...] = ()
    count: int = 1
    namespace: str = "default"

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not (self.add or self.remove or self.drain or self.cordon or self.submit)


class Files(msgspec.Struct, frozen=True):
    """The files that the user named: manifests and their names, and nodes by the file's name."""

    submitted: tuple[tuple[str, str], ...] = ()
    nodes: dict[str, tuple[Node, ...]] = {}


def files(wanted: Wanted) -> Files:
    """Read the files.

    Raises:
        InputError: says all that is wrong.
    """
    problems: list[str] = []
    submitted: list[tuple[str, str]] = []
    nodes: dict[str, tuple[Node, ...]] = {}
    for path in wanted.submit:
        try:
            submitted.append(_text(path))
        except InputError as error:
            problems.append(str(error))
    for text in wanted.add:
        try:
            if not shapes.is_shape(text) and Path(text).is_file():
                nodes[text] = new_nodes([_text(Path(text))])
        except (InputError, TableError) as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    return Files(tuple(submitted), nodes)


def _text(path: Path) -> tuple[str, str]:
    """Return a file's name and its text.

    Raises:
        InputError: it cannot be read, or is no text.
    """
    try:
        return str(path), path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: this is not text: give a file of manifests") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def changes(wanted: Wanted, found: Files, state: State) -> tuple[Changes, tuple[str, ...]]:
    """Return the changes, and what of the manifests was left out or taken for granted.

    Raises:
        InputError: says all that is wrong.
    """
    problems: list[str] = []
    existing = {e.node.name: e.node for e in state.known if isinstance(e, events.NodeChanged)}
    added: list[Node] = []
    for text in wanted.add:
        try:
            if (nodes := found.nodes.get(text)) is None:
                nodes = shapes.nodes(text, existing, [node.name for node in added])
            added += nodes
        except shapes.ShapeError as error:
            problems.append(f"--add-nodes {error}")
    asked = Submission()
    try:
        if found.submitted:
            there = (*existing.values(), *added)
            asked = submission(found.submitted, there, state.priorities, wanted.namespace)
    except TableError as error:
        problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    asked = copies(asked, wanted.count)
    return (
        Changes(
            add=tuple(added),
            remove=_distinct(wanted.remove),
            drain=_distinct(wanted.drain),
            cordon=_distinct(wanted.cordon),
            objects=asked.objects,
            gangs=asked.gangs,
            pods=asked.pods,
            trainings=asked.trainings,
        ),
        asked.notes,
    )


def _distinct(nodes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(nodes))


def from_snapshot(path: Path) -> State:
    """Return what a snapshot holds.

    Raises:
        InputError: it is none, is damaged, or needs plugins that are not there.
    """
    try:
        snapshot = saved.load(path)
        assembly = assemble(conf.Configuration(profiles=snapshot.profiles), str(path))
        profiles = assembly.profiles()
        check_plugins(snapshot, profiles, str(path))
    except (SnapshotError, conf.ConfigurationError) as error:
        raise InputError(str(error)) from error
    known = list(replay_events(snapshot))
    return State(known, profiles, snapshot.seed, snapshot.time)
