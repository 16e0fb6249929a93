"""The tests of GPU sharing on a real GPU (`make test-gpu`), or on the fake one."""
