"""Fingerprints of pods are those of the exporters' library, whose own examples are used here."""

import pytest

from alnair.model.pods_fingerprint import pods_fingerprint, xxh64

TINY = ["jaeger-dpgjk", "nginx-rt684", "envoy-g9m22"]
MEDIUM = (
    "importer-kxqpk processor-424xv transformer-84vpn jaeger-6g6n9 publisher-cq98w "
    "subscriber-24lpk collector-zvl28 watcher-bj7b6 transformer-mk7qw mongodb-b5pxs "
    "watcher-4qzlg publisher-ftpnk fluentd-fs9j8 jaeger-flvh4 manager-l6n55 grafana-q7sdf "
    "prometheus-qds9v collector-b7fx4 consumer-l94c8 redis-k7rmn"
)


@pytest.mark.parametrize(
    ("namespace", "names", "want"),
    [
        ("production", TINY, "pfp0v001607b76a0e9d3aeb4"),
        ("production", TINY[::-1], "pfp0v001607b76a0e9d3aeb4"),
        ("development", MEDIUM.split(" "), "pfp0v00111a79869f24a9528"),
        ("", [], "pfp0v001ef46db3751d8e999"),
    ],
)
def test_fingerprints_are_those_of_the_library(namespace: str, names: list[str], want: str) -> None:
    assert pods_fingerprint((namespace, name) for name in names) == want


@pytest.mark.parametrize(
    ("data", "want"),
    [(b"", 0xEF46DB3751D8E999), (b"a", 0xD24EC4F1A98C6E5B), (b"abc", 0x44BC2CF5AD770999)],
)
def test_xxh64_gives_the_published_sums(data: bytes, want: int) -> None:
    assert xxh64(data) == want
