"""GpuShare: whole GPUs and slices of one GPU."""
