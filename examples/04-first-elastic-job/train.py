"""Trains a small model with Elastic Horovod; workers come and go while it does.

Every step goes through all rows, a part in each process. So the number of processes changes how
fast it is, and not what is learnt: the loss after each step is the same with 1 worker and with 4.
"""

import argparse
import json
import time
from pathlib import Path

import horovod.torch as hvd
import torch

#: Divisible by 1 to 6 workers: then each has the same number of rows.
ROWS = 240


def pause(given: str) -> float:
    """Seconds to wait after a step: a number, or a file with one, which may change meanwhile."""
    path = Path(given)
    return float(path.read_text() if path.exists() else given)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--commit-every", type=int, default=5, help="steps that a lost worker costs")
parser.add_argument("--pause", default="0", help="seconds after each step, or a file with them")
options = parser.parse_args()

hvd.init()
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
torch.manual_seed(1)
rows = torch.randn(ROWS, 16)
wanted = torch.sin(rows.sum(1, keepdim=True))
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())


@hvd.elastic.run  # called again, from the last commit, whenever the workers are others
def train(state):
    while state.step < options.steps:
        mine = slice(hvd.rank(), None, hvd.size())
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(rows[mine]), wanted[mine])
        loss.backward()
        optimizer.step()  # with the mean of all processes' gradients
        loss = hvd.allreduce(loss.detach(), name="loss").item()
        state.step += 1
        if hvd.rank() == 0:
            told = {"step": state.step, "loss": loss, "workers": hvd.size(), "time": time.time()}
            print(json.dumps(told), flush=True)
            time.sleep(pause(options.pause))
        # Between commits workers must neither come nor go: of `step` those that come would get the
        # committed value, and of the model the newest. So there is no check_host_updates() here.
        if state.step % options.commit_every == 0:
            state.commit()


train(hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0))
if hvd.rank() == 0:  # what two trainings that learnt the same have in common
    norms = {name: one.norm().item() for name, one in model.named_parameters()}
    print(json.dumps({"parameters": norms}), flush=True)
