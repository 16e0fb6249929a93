"""The placement benchmark: how full policies fill the GPUs of a trace."""
