"""GpuAllocation: nodes by how many of their GPUs are in use, before cores and memory count."""
