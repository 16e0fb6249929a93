"""What benchmarks import: kinds of work, cases and the machine. What one runs is a folder above."""
