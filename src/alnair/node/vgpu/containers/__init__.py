"""A container as the server keeps it: its slices, folder, socket, processes and journal."""
