"""The programs of the cluster: found where the user has them, or built once and kept."""
