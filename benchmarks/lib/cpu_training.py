"""A real training on one CPU core, which logs when each step began; run by a Python with torch.

    python3 cpu_training.py NAME --seconds S --step TARGET --seed N

It imports nothing of Alnair: the Python that has torch may be another one (Debian's python3-torch).
The batch is sized so that a step takes about TARGET seconds on this machine. Each line of stdout is
JSON: `{"step": n, "at": seconds}` as a step begins, before its input is loaded, on the monotonic
clock, and `{"event": name, "at": seconds}` as an evaluation or a checkpoint begins.
"""

import argparse
import json
import math
import tempfile
import time
import zlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class LastOutput(nn.Module):
    """A recurrent net, of which the output of the last step is classified."""

    def __init__(self, net: nn.Module, width: int) -> None:
        super().__init__()
        self.net, self.head = net, nn.Linear(width, 10)

    def forward(self, values: Any) -> Any:  # noqa: D102 - torch asks for it
        return self.head(self.net(values)[0][:, -1])


class Pooled(nn.Module):
    """A transformer, whose outputs are averaged and classified."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.net, self.head = nn.TransformerEncoder(layer, layers), nn.Linear(width, 10)

    def forward(self, values: Any) -> Any:  # noqa: D102 - torch asks for it
        return self.head(self.net(values).mean(dim=1))


def mlp() -> tuple[nn.Module, tuple[int, ...]]:
    layers = [nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(1024, 10)), (512,)


def cnn() -> tuple[nn.Module, tuple[int, ...]]:
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 10)), (3, 32, 32)


def rnn() -> tuple[nn.Module, tuple[int, ...]]:
    return LastOutput(nn.LSTM(64, 128, batch_first=True), 128), (32, 64)


def gru() -> tuple[nn.Module, tuple[int, ...]]:
    return LastOutput(nn.GRU(32, 96, num_layers=2, batch_first=True), 96), (24, 32)


def transformer() -> tuple[nn.Module, tuple[int, ...]]:
    return Pooled(64, 2), (48, 64)


#: Name → the net, seconds that the store takes for a batch as part of the step, an evaluation after
#: so many steps, a checkpoint after so many, micro-batches in a step, is the input compressed.
TRAININGS: dict[str, tuple[Callable[[], Any], float, int, int, int, bool]] = {
    "mlp": (mlp, 0.25, 0, 0, 1, False),
    "mlp-input-bound": (mlp, 0.6, 0, 0, 1, False),
    "cnn": (cnn, 0.0, 0, 0, 1, False),
    "cnn-evaluated": (cnn, 0.15, 15, 0, 1, False),
    "cnn-decoding": (cnn, 0.0, 0, 0, 1, True),
    "rnn": (rnn, 0.25, 0, 0, 1, False),
    "rnn-input-bound": (rnn, 0.5, 0, 25, 1, False),
    "gru-checkpoints": (gru, 0.2, 0, 10, 1, False),
    "transformer": (transformer, 0.0, 0, 0, 1, False),
    "transformer-evaluated": (transformer, 0.2, 12, 24, 1, False),
    "transformer-micro-batches": (transformer, 0.25, 0, 0, 2, False),
}


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def step(net: Any, optimizer: Any, batches: list[Any], labels: Any) -> None:
    optimizer.zero_grad()
    for batch in batches:
        nn.functional.cross_entropy(net(batch), labels[: len(batch)]).backward()
    optimizer.step()


def timed_step(
    net: Any, optimizer: Any, size: int, shape: tuple[int, ...], micro: int, labels: Any
) -> float:
    began = time.monotonic()
    step(net, optimizer, [torch.randn(size, *shape) for _ in range(micro)], labels)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=TRAININGS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--step", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(given.seed)
    make, waits, evaluated, kept, micro, packed = TRAININGS[given.name]
    net, shape = make()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    # The size of the batch: the time of a step is about linear in it.
    size, labels = 16, torch.randint(10, (65536,))
    computing = given.step * (1 - waits)
    for _ in range(6):
        took = min(timed_step(net, optimizer, size, shape, micro, labels) for _ in range(2))
        size = max(4, min(32768, math.ceil(size * min(8, computing / took))))
    stored = zlib.compress(torch.randn(size, *shape).numpy().tobytes(), 1)
    end, number = time.monotonic() + given.seconds, 0
    say(batch=size, torch=torch.__version__)
    while time.monotonic() < end:
        say(step=number, at=time.monotonic())
        time.sleep(waits * given.step)  # the batch comes from a store over the network
        if packed:
            data = torch.frombuffer(bytearray(zlib.decompress(stored)), dtype=torch.float32)
            batches = [data.reshape(size, *shape)]
        else:
            batches = [torch.randn(size, *shape) for _ in range(micro)]
        step(net, optimizer, batches, labels)
        number += 1
        if evaluated and number % evaluated == 0:
            say(event="evaluation", at=time.monotonic())
            with torch.no_grad():
                for _ in range(6):
                    net(torch.randn(size, *shape))
        if kept and number % kept == 0:
            say(event="checkpoint", at=time.monotonic())
            with tempfile.TemporaryFile() as file:
                torch.save((net.state_dict(), optimizer.state_dict()), file)
                time.sleep(given.step)  # and it is sent to a store
    say(event="end", at=time.monotonic())


main()  # a program, which nothing imports: torch is not among our packages
