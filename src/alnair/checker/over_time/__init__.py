"""What is judged over time: a cluster followed change by change, every instant."""
