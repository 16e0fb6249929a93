RESOURCES = {"nvidia.com/gpu": 5, "cpu": 1, "memory": 1}
