"""What several processes share toward their operators: HTTP, metrics, logs."""
