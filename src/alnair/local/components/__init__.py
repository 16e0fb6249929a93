"""The processes of the cluster: how each is started, asked whether it is well, and stopped."""
