"""Trains a small network on as many processes as there are: they may come and go."""

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

STEPS = int(os.environ.get("STEPS", "200"))
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds, as a larger model would take
BATCH = 24
FOLDER = Path(os.environ.get("FOLDER", "/data"))
CHECKPOINT, PARTIAL, EVERY = FOLDER / "checkpoint.pt", FOLDER / "checkpoint.partial", 10


def dataset() -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and what is to be learned of them."""
    noise = torch.Generator().manual_seed(1)
    inputs = torch.randn(4096, 8, generator=noise)
    return inputs, inputs.sin().sum(dim=1, keepdim=True)


def batch_of(step: int) -> torch.Tensor:
    """Return the samples of a step: the same for all processes, whenever they ask."""
    return torch.randint(4096, (BATCH,), generator=torch.Generator().manual_seed(step))


def main() -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    parallel = DistributedDataParallel(model)
    inputs, wanted = dataset()
    saved = [torch.load(CHECKPOINT) if rank == 0 and CHECKPOINT.exists() else None]
    dist.broadcast_object_list(saved)
    first, weights, momenta = saved[0] or (0, model.state_dict(), optimizer.state_dict())
    model.load_state_dict(weights)
    optimizer.load_state_dict(momenta)
    for step in range(first, STEPS):
        mine = batch_of(step)[rank::world]
        loss = mse_loss(parallel(inputs[mine]), wanted[mine], reduction="sum") * world / BATCH
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step + 1}/{STEPS} loss {loss.item():.6f} processes {world}", flush=True)
        time.sleep(PAUSE)
        if rank == 0 and (step + 1) % EVERY == 0:
            torch.save((step + 1, model.state_dict(), optimizer.state_dict()), PARTIAL)
            PARTIAL.replace(CHECKPOINT)
    if rank == 0:
        torch.save(model.state_dict(), FOLDER / "model.pt")
    dist.barrier()  # nobody ends before the model is there
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
