"""For tests against a real control plane: its clusters, our processes, the real kube-scheduler."""
