"""Training jobs seen from outside: found, submitted, followed, changed, their logs."""
