"""Alnair: an AI platform for Kubernetes.

It measures GPU jobs, predicts what they need, places gangs, whole GPUs and exact slices of a GPU,
enforces the slices and resizes elastic jobs. The packages are layers; see
`docs/concepts/architecture.md`.
"""
