"""Of a bundle: unpacks the wheels that fit this Python, without pip, and runs the tests by them."""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def fits(name: str) -> bool:
    """Whether a wheel of this file name is for this Python."""
    python, abi = name.removesuffix(".whl").split("-")[-3:-1]
    if abi == "none":
        return True
    own = f"cp3{sys.version_info.minor}"
    return abi == own or (abi == "abi3" and int(python.removeprefix("cp3")) <= sys.version_info[1])


def main() -> None:
    """Becomes the tests, with the packages in a folder that goes with this process's folder."""
    about = json.loads((HERE / "bundle.json").read_text())
    if os.uname().machine != about["machine"]:
        sys.exit(f"run: this bundle is for {about['machine']}, and this is a {os.uname().machine}")
    own = f"3.{sys.version_info.minor}"
    if own not in about["pythons"]:
        known = ", ".join(about["pythons"])
        sys.exit(
            f"run: this bundle has the packages for Python {known}, and {sys.executable} is {own}:"
            " ALNAIR_PYTHON=/path/to/python3 ./run"
        )
    script = str(HERE / "tests" / "gpu" / "run.py")
    words = [sys.executable, script, *sys.argv[1:]]
    looked = subprocess.check_output([sys.executable, script, "--look"], text=True)
    if looked.startswith("skipped"):  # to say so takes no packages, and no seconds
        sys.exit(subprocess.call(words))
    with tempfile.TemporaryDirectory(prefix="alnair-gpu-") as folder:
        for wheel in sorted((HERE / "wheels").glob("*.whl")):
            if fits(wheel.name):
                with zipfile.ZipFile(wheel) as content:
                    content.extractall(folder)
        environment = {**os.environ, "PYTHONPATH": folder}
        status = os.spawnve(os.P_WAIT, sys.executable, words, environment)
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
