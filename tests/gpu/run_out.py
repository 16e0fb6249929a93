"""Runs out of memory again and again, as a training loop that frees and retries: CYCLES LIMIT_MIB.

Elementwise work only, so that it needs no cuBLAS. Prints one line of JSON.
"""

import json
import re
import sys

import torch

cycles, limit = int(sys.argv[1]), int(sys.argv[2])
went_on, text = 0, ""
weight = torch.ones(1 << 20, device="cuda", requires_grad=True)
for _ in range(cycles):
    kept: list[torch.Tensor] = []
    try:
        while True:
            kept.append(torch.empty(512 << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        text = str(error)
    kept.clear()
    torch.cuda.empty_cache()
    loss = (weight * 2).sum()
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None
    torch.cuda.synchronize()
    went_on += 1
capacity = re.search(r"(?:total capacity of|Device limit *:) *([\d.]+) (GiB|MiB)", text)
mib = float(capacity[1]) * (1024 if capacity[2] == "GiB" else 1) if capacity else 0
names = int(abs(mib - limit) < 16)
print(json.dumps({"went_on": went_on, "names_limit": names, "capacity": capacity and capacity[0]}))
