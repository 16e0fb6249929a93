"""A real local Kubernetes cluster, for trying Alnair and for testing it.

etcd, kube-apiserver, controller-manager, scheduler and kwok run as ordinary processes of the user,
without Docker and without root; thousands of GPU nodes are simulated in it as API objects, and as
root on Linux one node can be real (`real_node`). This package starts, watches and stops processes
and talks to the API server through `alnair.kube`. It decides nothing about pods, prints nothing (it
reports to a `Report`), and imports nothing from `alnair.cli`.
"""
