"""One module for each way of printing; each has `read`, which knows its own lines from others'."""
