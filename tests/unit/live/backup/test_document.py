"""The file of a backup: what it takes, and what it refuses before anything is done."""

from typing import Any

import msgspec
import pytest

from alnair.configuration.strict_yaml import DocumentError
from alnair.live.backup.document import Backup, Metadata, SavedLabel, SavedObject, decode, encode

QUOTA = SavedObject(
    "scheduling.x-k8s.io/v1alpha1",
    "ElasticQuota",
    Metadata("q", "team-a", {"a": "b"}, {"note": "é"}),
    {"min": {"nvidia.com/gpu": "4"}},
)
BACKUP = Backup(
    "backup.alnair.io/v1",
    "Backup",
    "2026-11-23T08:00:00Z",
    "https://cluster:6443",
    "0.1.0",
    [QUOTA],
    [SavedLabel("Node", "gpu-1", "enabled")],
)


def changed(**changes: Any) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(BACKUP) | changes)


def objects(**changes: Any) -> bytes:
    return changed(objects=[msgspec.to_builtins(QUOTA) | changes])


def test_what_is_written_is_read_again() -> None:
    assert decode(encode(BACKUP)) == BACKUP


@pytest.mark.parametrize("length", [0, 1, 40, 200, len(encode(BACKUP)) - 3])
def test_a_file_that_was_cut_off_is_refused(length: int) -> None:
    with pytest.raises(DocumentError, match="no backup, or not all of one"):
        decode(encode(BACKUP)[:length])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[]", "write fields and values, not a list"),
        (changed(apiVersion="backup.alnair.io/v9"), "found backup.alnair.io/v9, Backup"),
        (changed(kind="List"), "'alnair backup' writes such a file"),
        (changed(more=1), "more: there is no such field"),
        (changed(objects=None), "objects: write a list"),
        (objects(kind="Secret"), r"objects\[0\]\.kind: Secret of scheduling.x-k8s.io/v1alpha1 is"),
        (objects(status={}), r"objects\[0\]\.status: there is no such field"),
        (objects(metadata={"name": "q"}), r"objects\[0\]\.metadata\.namespace: is missing"),
        (changed(objects=[QUOTA, QUOTA]), r"objects\[1\]: ElasticQuota team-a/q is there twice"),
        (changed(labels=[{"kind": "Pod", "name": "p", "value": ""}]), r"labels\[0\]\.kind: 'Pod'"),
    ],
)
def test_what_is_no_backup_is_refused_with_its_place(data: bytes, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        decode(data)
