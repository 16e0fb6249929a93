"""GPUs and slices for containers: asked by the kubelet, decided in `alnair.sharing.matching`."""
