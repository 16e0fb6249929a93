"""All programs that clusters of this machine may need, and an image to train, built beforehand."""

import os

from alnair.local.components import components
from alnair.local.controlplane import LocalCluster
from alnair.local.errors import LocalClusterError
from alnair.local.own_images import horovod_image, torch_image
from alnair.local.real_node import requirements
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.report import ProgressReport


def prepare(report: ProgressReport) -> None:
    """Builds what is missing; a real node's programs only where one can run.

    Raises:
        LocalClusterError: No cluster can run here.
    """
    name = "none"
    cluster = LocalCluster(name, components=components.FULL, report=report)
    reason = requirements.refusal(cluster.layout, os.environ)
    if reason is None:
        wish = RealNodeWish(wanted=True)
        cluster = LocalCluster(name, components=components.FULL, real_node=wish, report=report)
    else:
        report.step(f"no real node's programs: {reason}")
    cluster.prepare()
    if reason is None:
        try:
            torch_image.build(os.environ, report)
            horovod_image.build(os.environ, report)
        except LocalClusterError as error:
            report.step(f"no image for trainings: {error}")
