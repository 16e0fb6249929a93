"""What nvidia-ml-py reads where this runs: one line of JSON. Run in a container with limits."""

import json

import pynvml

pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
gpus = pynvml.nvmlDeviceGetCount()
print(json.dumps({"gpus": gpus, "total": memory.total, "used": memory.used, "free": memory.free}))
