"""The local stack: broker, coordinator, workers and delay servers as child processes."""
