"""Pages of memory that a container and the server share: limits one way, counters the other."""
