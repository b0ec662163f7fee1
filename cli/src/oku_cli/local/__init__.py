"""Runs Oku on this machine: broker, coordinator, workers and delay servers as child processes."""
