"""What goes wrong with a local cluster, said in one sentence with the fix."""


class LocalClusterError(Exception):
    """The cluster cannot be started, stopped or extended; the message says why and what to do."""


class InvalidArgumentError(LocalClusterError):
    """What was asked for makes no sense, on any machine and at any time."""
