"""The example's training at a test's pace: it goes on only as far as it is allowed.

So each change happens at a known step, however fast the machine is.
"""

import json
import re
from pathlib import Path
from typing import Final

from alnair.built_from import ROOT
from alnair.kube.resources import Manifest
from alnair.local.own_images import torch_image
from kit.live.trainings import ON_REAL_NODE

EXAMPLE: Final = ROOT / "examples" / "05-ddp-to-elastic"
#: Steps between two checkpoints of the example.
EVERY: Final = 10
#: PyTorch's compiler is a third of what a process loads before its first step, though nobody here
#: compiles: it is asked only to leave functions as they are.
_PROGRAM: Final = """
import importlib, json, os, pathlib, sys, time, unittest.mock
sys.path.insert(0, "/code")
import torch
torch._dynamo = sys.modules["torch._dynamo"] = unittest.mock.MagicMock()
torch._dynamo.disable = lambda function, *_, **__: function
script = importlib.import_module(sys.argv[1])
draw, allowed = script.batch_of, pathlib.Path("/data/allowed")
def batch_of(step):
    while step >= int(allowed.read_text()):
        time.sleep(0.02)
    return draw(step)
script.batch_of = batch_of
if os.environ["RANK"] == "0":
    print("begins with processes", os.environ["WORLD_SIZE"])
    print("rank 0 is in worker", os.environ.get("JOB_COMPLETION_INDEX", "none"))
script.main()
if os.environ["RANK"] == "0":
    found = torch.load(script.FOLDER / "model.pt")
    text = json.dumps([value.item() for one in found.values() for value in one.flatten()])
    (script.FOLDER / "model.json").write_text(text)
"""
_BEGIN: Final = re.compile(r"^begins with processes (\d+)$", re.MULTILINE)
_RANK_0: Final = re.compile(r"^rank 0 is in worker (\d+)$", re.MULTILINE)
_STEP: Final = re.compile(r"^step (\d+)/\d+ loss (\S+) processes (\d+)$", re.MULTILINE)


class PacedTraining:
    """A training whose files are in a folder that its workers share.

    Args:
        folder: Of this machine.
        steps: How many it has.
    """

    def __init__(self, folder: Path, steps: int) -> None:
        self.folder = folder
        self.steps = steps
        self.allowed = 0
        self.allow(0)

    def allow(self, steps: int) -> None:
        """Let it go on up to this step."""
        self.allowed = steps
        partial = self.folder / "allowed.partial"
        partial.write_text(str(steps))
        partial.replace(self.folder / "allowed")

    def processes(self) -> int:
        """How many it has had since it began for the last time; 0 before the first."""
        found = _BEGIN.findall(self._log())
        return int(found[-1]) if found else 0

    def worker_of_rank_0(self) -> int:
        """The index of the worker in which rank 0 has begun for the last time."""
        return int(_RANK_0.findall(self._log())[-1])

    def done(self) -> list[tuple[int, int]]:
        """The steps in the order in which they were done, each with its number of processes."""
        return [(int(step), int(processes)) for step, _, processes in _STEP.findall(self._log())]

    def parameters(self, run: str = "") -> list[float]:
        """The parameters of the trained model; of a run with a folder of its own."""
        values: list[float] = json.loads((self.folder / run / "model.json").read_text())
        return values

    def elastic(self, name: str, workers: Manifest) -> Manifest:
        """An ElasticTorchJob that runs it elastically."""
        script = 'exec python3 -uc "$0" "$@" >> /data/log 2>&1'
        return {
            "apiVersion": "ai.centauruscloud.io/v1alpha1",
            "kind": "ElasticTorchJob",
            "metadata": {"name": name},
            "spec": {
                "workersSpec": {
                    "pythonCommand": ["/bin/sh", "-c", script, _PROGRAM, "train_elastic"],
                    **self._where(),
                    **ON_REAL_NODE,
                    **workers,
                }
            },
        }

    def fixed(self, name: str) -> Manifest:
        """A pod that runs the plain script on one process, in the folder `fixed`."""
        (self.folder / "fixed").mkdir()
        where = self._where()
        alone = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500}
        env = [{"name": key, "value": str(value)} for key, value in alone.items()]
        container = {
            "name": "main",
            "image": where["image"],
            "imagePullPolicy": "Never",
            "command": ["python3", "-uc", _PROGRAM, "train"],
            "env": [*where["env"], *env, {"name": "FOLDER", "value": "/data/fixed"}],
            "volumeMounts": where["volumeMounts"],
            "resources": ON_REAL_NODE["resources"],
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": ON_REAL_NODE["nodeSelector"],
                "containers": [container],
                "volumes": where["volumes"],
            },
        }

    def _log(self) -> str:
        log = self.folder / "log"
        return log.read_text() if log.exists() else ""

    def _where(self) -> Manifest:
        """What the pods of both kinds have."""
        folders = {"code": EXAMPLE, "data": self.folder}
        env = {"STEPS": self.steps, "OMP_NUM_THREADS": 1}
        return {
            "image": torch_image.NAME,
            "imagePullPolicy": "Never",
            "env": [{"name": key, "value": str(value)} for key, value in env.items()],
            "volumes": [
                {"name": key, "hostPath": {"path": str(path)}} for key, path in folders.items()
            ],
            "volumeMounts": [{"name": key, "mountPath": f"/{key}"} for key in folders],
        }
