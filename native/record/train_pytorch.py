"""What is recorded of PyTorch: train_pytorch.py train|graph|refused. No cuBLAS is needed."""

import sys

import torch


def step(weight: torch.Tensor, batch: torch.Tensor) -> None:
    """One step of a model that is a weight: activations of several sizes come and go."""
    hidden = (batch * weight).relu()
    wide = torch.cat([hidden, hidden])
    (wide * 2).mean().backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None


def train(weight: torch.Tensor) -> None:
    """Steps with batches of changing size, a copy on a second stream, and the cache emptied."""
    side = torch.cuda.Stream()
    for size in (8, 16, 12, 24, 8):
        host = torch.ones(size, weight.numel()).pin_memory()
        with torch.cuda.stream(side):
            batch = host.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        batch.record_stream(torch.cuda.current_stream())
        step(weight, batch)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    step(weight, torch.ones(32, weight.numel(), device="cuda"))
    torch.cuda.synchronize()


def graph(weight: torch.Tensor) -> None:
    """A step captured once and launched ten times."""
    batch = torch.ones(16, weight.numel(), device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step(weight, batch)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        step(weight, batch)
    for _ in range(10):
        captured.replay()
    torch.cuda.synchronize()


def refused(weight: torch.Tensor) -> None:
    """Runs out of memory thrice, frees and goes on."""
    batch = torch.ones(8, weight.numel(), device="cuda")
    for _ in range(3):
        kept = []
        try:
            while True:
                kept.append(torch.empty(512 << 20, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            kept.clear()
            torch.cuda.empty_cache()
        step(weight, batch)
    torch.cuda.synchronize()


if __name__ == "__main__":
    start = torch.ones(1 << 18, device="cuda", requires_grad=True)
    {"train": train, "graph": graph, "refused": refused}[sys.argv[1]](start)
