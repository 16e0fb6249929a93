"""Trains a small GPT on made-up text, deterministically: STEPS. Prints its losses and its time."""

import json
import sys
import time

import torch
from torch import nn

torch.manual_seed(1)
torch.use_deterministic_algorithms(True, warn_only=True)
steps = int(sys.argv[1])
width, heads, depth, vocabulary, length, batch = 256, 8, 6, 512, 128, 16
layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, batch_first=True, norm_first=True)
model = nn.Sequential(
    nn.Embedding(vocabulary, width),
    nn.TransformerEncoder(layer, depth, enable_nested_tensor=False),
    nn.Linear(width, vocabulary),
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
text = torch.randint(vocabulary, (batch, length + 1), device="cuda")
losses, begun = [], time.monotonic()
for step in range(steps):
    text = (text * 31 + step) % vocabulary
    logits = model(text[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0 or step == steps - 1:
        losses.append(loss.item())
print(json.dumps({"losses": losses, "seconds": time.monotonic() - begun}))
