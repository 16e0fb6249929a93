"""What hatchling adds to a wheel: the commit, and for a platform wheel the C library.

Set by `make wheel`; without, any build makes the pure wheel:

    ALNAIR_COMMIT    the commit; else git is asked
    ALNAIR_MACHINE   x86_64 or aarch64: a platform wheel
    ALNAIR_NATIVE    the folder with the libraries of that machine, built for glibc 2.17
"""

import os
import runpy
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: As alnair.node.vgpu.interposer_path expects them, beside itself.
LIBRARIES = {
    "libalnair_vgpu.so": "alnair/node/vgpu/libraries/libalnair_vgpu.so",
    "proxy/libcuda.so.1": "alnair/node/vgpu/libraries/proxy/libcuda.so.1",
}


class WheelHook(BuildHookInterface):
    """Called by hatchling before it builds."""

    def initialize(self, version, build_data):
        """Adds the files and the tag; an editable install is left as it is."""
        if version == "editable":
            return
        root = Path(self.root)
        built_from = runpy.run_path(str(root / "src" / "alnair" / "built_from.py"))
        commit = os.environ.get("ALNAIR_COMMIT") or built_from["describe"](root)
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name, built_from["FILE"])
        file.write_text(f"{commit}\n")
        build_data["force_include"][str(file)] = f"alnair/{file.name}"
        if machine := os.environ.get("ALNAIR_MACHINE"):
            native = Path(os.environ["ALNAIR_NATIVE"])
            for name, place in LIBRARIES.items():
                build_data["force_include"][str(native / name)] = place
            table = "native/vgpu/symbols.tsv"  # for `alnair agent doctor`
            folder = Path(LIBRARIES["libalnair_vgpu.so"]).parent
            build_data["force_include"][str(root / table)] = str(folder / "symbols.tsv")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-manylinux2014_{machine}"

    def finalize(self, version, build_data, artifact_path):
        """Removes what was written for the build."""
        if version != "editable":
            self._folder.cleanup()
