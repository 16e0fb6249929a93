"""How long a running training waits for two workers more, and how soon two give back their GPUs.

    python benchmarks/elastic_scaling.py [--kind horovod|torchrun] [--rounds 3] [--json]

A real ElasticHorovodJob, and then a real ElasticTorchJob, train a small model on a real node, their
workers with slices of a fake GPU. Each goes from 2 workers to 4 and back, again and again. Of each
growth, seconds from the user's word (a patch of the scale, like `kubectl scale`): until the pods
are made (ours), until both have a node and GPUs (the scheduler, ours), until their containers run
(kubelet, containerd). Then, of Horovod: until the training was told of them (ours), until the first
step with 4 workers (Horovod: it asks for hosts every second, starts Python with PyTorch in them by
ssh, and makes a ring). Of torchrun: until the agents of the new pods have started (Python with
PyTorch), until all four have met (waits of torchrun, which we set), until the script has started
anew, has PyTorch, has its process group, model and checkpoint, and has done a step. Of each shrink:
until the first step with 2 workers, and until the pods are gone and the agent has their slices
back, less the grace. Looks every 20 ms. Needs Linux and root; all shares the machine's cores.

Bounds of the issue: 30 s from GPUs to training, 15 s for giving back.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.local.controlplane import LocalCluster
from alnair.local.layout import Layout
from alnair.local.own_images import horovod_image, torch_image
from alnair.local.real_node import requirements
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.report import NO_REPORT
from lib import horovod_scaling, torchrun_scaling
from lib.machine import describe

TRAINS_S, RELEASED_S = 30.0, 15.0
KINDS = ("horovod", "torchrun")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, help="only this one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="only the line of JSON")
    options = parser.parse_args()
    kinds = (options.kind,) if options.kind else KINDS
    with tempfile.TemporaryDirectory(prefix="alnair-bench-") as folder:
        reason = requirements.refusal(Layout(Path(folder), "node"), os.environ)
        reason = reason or (horovod_image.problem() if "horovod" in kinds else None)
        if reason is not None:
            print(f"skipped: {reason}", file=sys.stderr)
            return 0
        found = asyncio.run(measure(Path(folder), kinds, options.rounds))
    result = {
        "rounds": options.rounds,
        **{
            kind: {f"{key}_s": _summary(values) for key, values in parts.items()}
            for kind, parts in found.items()
        },
        "bounds_s": {"gpus_to_training": TRAINS_S, "released_after_grace": RELEASED_S},
        "load": round(os.getloadavg()[0], 1),
        "machine": describe(),
    }
    if not options.json:
        for kind, parts in found.items():
            for key, values in parts.items():
                spread = f"p50 {statistics.median(values):6.2f}  max {max(values):6.2f} s"
                print(f"{kind:<9} {key:<24} {spread}")
    print(json.dumps(result))
    slow = [parts for parts in found.values() if max(parts["gpus_to_training"]) > TRAINS_S]
    late = [parts for parts in found.values() if max(parts["released_after_grace"]) > RELEASED_S]
    return int(bool(slow or late))


def _summary(values: list[float]) -> dict[str, float]:
    return {"p50": round(statistics.median(values), 3), "max": round(max(values), 3)}


async def measure(
    folder: Path, kinds: tuple[str, ...], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Seconds of each part of each kind, a value for each round."""
    wish = RealNodeWish(wanted=True, gpus=1, gpu_model="h100")
    cluster = LocalCluster("scaling", root=folder, real_node=wish, scheduler=True)
    found = {}
    try:
        await cluster.up()
        node = cluster.real_node()
        assert node is not None
        async with Client(client_config.load(cluster.kubeconfig())) as client:
            for kind in kinds:
                make = horovod_image.build if kind == "horovod" else torch_image.build
                image = make(os.environ, NO_REPORT)
                node.import_archive(image.archive, image.digest)
                if kind == "horovod":
                    found[kind] = await horovod_scaling.measure(client, cluster, rounds)
                else:
                    saved = folder / "checkpoints"
                    saved.mkdir()
                    found[kind] = await torchrun_scaling.measure(client, cluster, rounds, saved)
            return found
    finally:
        await cluster.down()


if __name__ == "__main__":
    sys.exit(main())
