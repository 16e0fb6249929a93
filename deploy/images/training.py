"""Builds an image for trainings, and has it on a cluster's real node if one is named.

training.py horovod|torch [--cluster NAME]
"""

import argparse
import os
import sys

from alnair.cli.progress import Display
from alnair.local.controlplane import LocalCluster
from alnair.local.errors import LocalClusterError
from alnair.local.own_images import horovod_image, torch_image

_IMAGES = {"horovod": horovod_image, "torch": torch_image}


def main() -> None:
    """Builds, and prints name, size and archive of the image."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("image", choices=_IMAGES)
    parser.add_argument("--cluster", metavar="NAME", help="whose real node shall have it")
    options = parser.parse_args()
    with Display() as report:
        image = _IMAGES[options.image].build(os.environ, report)
        if options.cluster is not None:
            node = LocalCluster(options.cluster, report=report).real_node()
            if node is None:
                raise LocalClusterError(
                    f"cluster {options.cluster} has no real node: alnair up --real-node makes one"
                )
            node.import_archive(image.archive, image.digest)
    print(f"{image.name}  {image.size / 1e6:.0f} MB  {image.digest[:19]}  {image.archive}")


if __name__ == "__main__":
    try:
        main()
    except LocalClusterError as error:
        sys.exit(f"error: {error}")
