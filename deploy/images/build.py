"""Builds Alnair's images and says what they are: `make images` runs this.

build.py [--machine x86_64|aarch64]
"""

import argparse
import os
import sys
import time

from alnair.cli.progress import Display
from alnair.local.errors import LocalClusterError
from alnair.local.own_images import images, requirements


def main() -> None:
    """Builds, and prints name, size and archive of each image."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--machine", choices=sorted(requirements.ARCHITECTURES), help="of the images; default: this"
    )
    options = parser.parse_args()
    began = time.monotonic()
    with Display() as report:
        built = images.build(os.environ, report, machine=options.machine)
    for image in built:
        print(f"{image.name}  {image.size / 1e6:.0f} MB  {image.digest[:19]}  {image.archive}")
    print(f"{time.monotonic() - began:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except LocalClusterError as error:
        sys.exit(f"make images: {error}")
