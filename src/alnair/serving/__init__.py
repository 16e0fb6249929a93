"""What several processes share toward their operators: life and health, HTTP, metrics, logs."""
