"""The profiler of pods: reads once a second, keeps books, and tells of them by HTTP."""
