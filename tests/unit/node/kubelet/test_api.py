"""The messages of the kubelet are those of their descriptions."""

from importlib import resources
from pathlib import Path

import pytest

FOLDER = Path(str(resources.files("alnair.node.kubelet.api")))
GENERATED = sorted(path.name for path in FOLDER.glob("*_pb2.py*"))


def test_the_generated_files_are_as_make_protos_writes_them(tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools is not installed")
    descriptions = [str(path) for path in sorted(FOLDER.glob("*.proto"))]
    done = protoc.main(
        ["", f"-I{FOLDER}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", *descriptions]
    )
    assert done == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == GENERATED
    assert len(GENERATED) == 4
    changed = [
        name for name in GENERATED if (tmp_path / name).read_text() != (FOLDER / name).read_text()
    ]
    assert not changed, "make protos"
