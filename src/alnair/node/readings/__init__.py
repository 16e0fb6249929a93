"""What NVML says of one GPU at one moment: the calls, by subject, and what they come to."""
