"""A container's log as it is written, without loss or repetition when a connection breaks."""
