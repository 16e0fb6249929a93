"""Images as an archive that containerd imports (docker-archive): tar files and two of JSON.

The format is that of `docker save`, version 1.2: https://github.com/moby/docker-image-spec
"""

import hashlib
import io
import json
import os
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
                blob = _layer(layer)
                name = hashlib.sha256(blob).hexdigest()
                layers.append(name)
                if name not in held:
                    _add(archive, f"{name}.tar", blob)
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


def _layer(layer: Layer) -> bytes:
    """The layer as a tar file; the same files give the same bytes, whoever makes it and when."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
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
            _entry(tar, name, tarfile.REGTYPE, mode, path.read_bytes())
        for name, content in sorted(layer.written.items()):
            _entry(tar, name, tarfile.REGTYPE, 0o644, content)
    return buffer.getvalue()


def _entry(
    tar: tarfile.TarFile, name: str, kind: bytes, mode: int, content: bytes = b"", link: str = ""
) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size, info.linkname = kind, mode, len(content), link
    tar.addfile(info, io.BytesIO(content))


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    _entry(archive, name, tarfile.REGTYPE, 0o644, content)
