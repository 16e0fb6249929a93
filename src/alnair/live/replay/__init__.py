"""A trace as real pods on a real API server, and what became of each."""
