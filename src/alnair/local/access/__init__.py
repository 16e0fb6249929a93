"""Certificates and kubeconfig files of the cluster, one identity for every process."""
