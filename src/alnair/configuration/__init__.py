"""The configuration of the scheduler: its file, strictly read, and the profiles that it means."""
