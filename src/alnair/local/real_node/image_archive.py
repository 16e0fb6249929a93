"""Images as an archive that containerd imports (docker-archive): tar files and two of JSON.

The format is that of `docker save`, version 1.2: https://github.com/moby/docker-image-spec
"""

import hashlib
import io
import json
import os
import platform
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Layer:
    """Files by their path in the image, without the first slash: copied, linked or written."""

    copied: Mapping[str, Path]
    links: Mapping[str, str]
    written: Mapping[str, bytes]


@dataclass(frozen=True)
class Image:
    """An image: its name with tag, its layers from the lowest, and the program that it runs."""

    name: str
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...]


def write(images: Sequence[Image], path: Path) -> None:
    """Writes an archive of images; layers that are equal are in it once."""
    with tarfile.open(path, "w") as archive:
        manifest = []
        held: set[str] = set()
        for image in images:
            layers = []
            for layer in image.layers:
                # Not in memory: a layer may have many hundred megabytes.
                with tempfile.TemporaryFile(dir=path.parent) as blob:
                    _write_layer(layer, blob)
                    size = blob.tell()
                    blob.seek(0)
                    name = hashlib.file_digest(blob, "sha256").hexdigest()
                    layers.append(name)
                    if name not in held:
                        blob.seek(0)
                        _entry(archive, f"{name}.tar", tarfile.REGTYPE, 0o644, blob, size)
                        held.add(name)
            config = _config(image, layers)
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            if name not in held:
                _add(archive, name, config)
                held.add(name)
            manifest.append(
                {
                    "Config": name,
                    "RepoTags": [image.name],
                    "Layers": [f"{layer}.tar" for layer in layers],
                }
            )
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _config(image: Image, layers: Sequence[str]) -> bytes:
    machine = platform.machine()
    document = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {
            "Entrypoint": list(image.entrypoint),
            "Env": ["PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin"],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{name}" for name in layers]},
    }
    return json.dumps(document).encode()


def _write_layer(layer: Layer, file: IO[bytes]) -> None:
    """Writes a layer as a tar file; the same files give the same bytes, by whom and whenever."""
    with tarfile.open(fileobj=file, mode="w") as tar:
        names = {*layer.copied, *layer.links, *layer.written}
        for folder in sorted({str(parent) for name in names for parent in Path(name).parents}):
            if folder != "." and folder not in layer.links:
                _entry(tar, folder, tarfile.DIRTYPE, 0o755)
        if "etc/passwd" in layer.written:
            _entry(tar, "tmp", tarfile.DIRTYPE, 0o1777)
        for name, target in sorted(layer.links.items()):
            _entry(tar, name, tarfile.SYMTYPE, 0o777, link=target)
        for name, path in sorted(layer.copied.items()):
            mode = 0o755 if os.access(path, os.X_OK) else 0o644
            with path.open("rb") as content:
                _entry(tar, name, tarfile.REGTYPE, mode, content, path.stat().st_size)
        for name, text in sorted(layer.written.items()):
            _entry(tar, name, tarfile.REGTYPE, 0o644, io.BytesIO(text), len(text))


def _entry(
    tar: tarfile.TarFile,
    name: str,
    kind: bytes,
    mode: int,
    content: IO[bytes] | None = None,
    size: int = 0,
    link: str = "",
) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size, info.linkname = kind, mode, size, link
    tar.addfile(info, content)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    _entry(archive, name, tarfile.REGTYPE, 0o644, io.BytesIO(content), len(content))
