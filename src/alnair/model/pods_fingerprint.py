"""The fingerprint of a set of pods that topology exporters put into their reports.

Format (k8stopologyawareschedwg/podfingerprint): `pfp0v001` and the XXH64 sum, in hex, of the pods'
own sums in ascending order, 8 bytes each, little-endian; a pod's sum is that of its name, seeded
with that of its namespace. XXH64: doc/xxhash_spec.md of github.com/Cyan4973/xxHash.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_PREFIX: Final = "pfp0v001"
_MASK: Final = 2**64 - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def pods_fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """Return the fingerprint of pods given by namespace and name, in any order."""
    sums = sorted(_pod_sum(namespace, name) for namespace, name in pods)
    return f"{_PREFIX}{xxh64(b''.join(s.to_bytes(8, 'little') for s in sums)):016x}"


@lru_cache(maxsize=100_000)
def _pod_sum(namespace: str, name: str) -> int:
    return xxh64(name.encode(), xxh64(namespace.encode()))


def xxh64(data: bytes, seed: int = 0) -> int:
    """Return the 64-bit xxHash of the data."""
    position = 0
    if len(data) >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while position + 32 <= len(data):
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], _word(data, position + 8 * lane))
            position += 32
        result = sum(map(_rotated, lanes, (1, 7, 12, 18)))
        for value in lanes:
            result = ((result ^ _round(0, value)) * _P1 + _P4) & _MASK
    else:
        result = seed + _P5
    result = (result + len(data)) & _MASK
    while position + 8 <= len(data):
        result = _rotated(result ^ _round(0, _word(data, position)), 27) * _P1 + _P4
        position += 8
    if position + 4 <= len(data):
        result = _rotated(result ^ _word(data, position, 4) * _P1, 23) * _P2 + _P3
        position += 4
    for byte in data[position:]:
        result = _rotated(result ^ byte * _P5, 11) * _P1
    result &= _MASK
    result = (result ^ result >> 33) * _P2 & _MASK
    result = (result ^ result >> 29) * _P3 & _MASK
    return result ^ result >> 32


def _round(lane: int, word: int) -> int:
    return _rotated(lane + word * _P2, 31) * _P1 & _MASK


def _rotated(value: int, by: int) -> int:
    value &= _MASK
    return (value << by | value >> 64 - by) & _MASK


def _word(data: bytes, position: int, size: int = 8) -> int:
    return int.from_bytes(data[position : position + size], "little")
