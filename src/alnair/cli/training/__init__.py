"""The verbs for training jobs: submit, jobs, logs, scale, suspend, resume, migrate."""
