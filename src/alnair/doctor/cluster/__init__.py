"""Checks that ask the API server. One that it refuses to answer is told as such, and is no error."""
