"""Which format a trace is in, told by its content."""

import csv
import re
from typing import Final

from alnair.sim.inputs.options import Format
from alnair.snapshots import snapshot
from alnair.traces import job_table
from alnair.traces.openb import NODE_COLUMNS

#: So much of a file is looked at.
_HEAD: Final = 65536
_YAML: Final = re.compile(r"(?m)^(?:- )?(?:apiVersion|kind|metadata|items|spec)\s*:|^---\s*$")
_SNAPSHOT: Final = re.compile(rf'\A\s*\{{\s*"format"\s*:\s*"{snapshot.FORMAT}"')
_SWF_FIELDS: Final = 18
_NUMBER: Final = re.compile(r"-?[0-9.]+")

#: What there is, for people.
KNOWN: Final = (
    "a pod list of openb (CSV with name, num_gpu, gpu_milli, …), a table of jobs like Philly's "
    "(CSV with timestamp, duration, num_gpus), SWF (18 numbers a line), Kubernetes manifests "
    "(YAML or JSON), a snapshot of 'alnair scheduler snapshot'"
)


def detect(text: str) -> Format:
    """Return the format; empty if it is none that is known."""
    head = text[:_HEAD]
    if _SNAPSHOT.search(head):
        return "snapshot"
    lines = [line for line in head.splitlines() if line.strip()]
    if not lines:
        return ""
    first = next((line for line in lines if not line.lstrip().startswith(";")), "")
    words = first.split()
    if len(words) == _SWF_FIELDS and all(map(_NUMBER.fullmatch, words)):
        return "swf"
    if first == "" or (lines[0].startswith(";") and words and _NUMBER.fullmatch(words[0])):
        return "swf"  # or meant as such: its reader says what is wrong
    if head.lstrip()[0] in "{[" or _YAML.search(head):
        return "manifests"
    return _table(lines[0])


def _table(header: str) -> Format:
    try:
        columns = {cell.strip().lower() for cell in next(csv.reader([header]))}
    except csv.Error:
        return ""
    if {"num_gpu", "gpu_milli"} <= columns:
        return "openb"
    known = set(job_table.REQUIRED)
    for column in job_table.REQUIRED:
        known.update(job_table.ALIASES[column])
    if len(columns) > 1 and columns & known:
        return "philly"
    return ""


def is_node_list(text: str) -> bool:
    """Whether this is a list of nodes, which is no trace by itself."""
    header = text[:_HEAD].split("\n", 1)[0]
    return set(NODE_COLUMNS) <= {cell.strip() for cell in header.split(",")}
