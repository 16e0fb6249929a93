"""Which pod a call of the kubelet is about, and which GPUs the pod's containers start on.

The kubelet allocates ids without saying for whom; the scheduler's assignment says which GPUs. What
joins them is decided here, on values: `start` for a container that is about to start, `choose` for
a pod that nobody gave GPUs, `preferred_ids` for ids that the kubelet is about to allocate.
`docs/concepts/device-plugin.md` tells how they work together.
"""
