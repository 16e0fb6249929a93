"""Checks that ask the API server; one that it refuses to answer is a warning, and no error."""
