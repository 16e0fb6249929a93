"""The GPUs of nodes: one table for whole and shared use, their links, their measured load."""
