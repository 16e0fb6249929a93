"""What the nodes, GPUs and pods of a cluster do now, as its objects and agents say."""
