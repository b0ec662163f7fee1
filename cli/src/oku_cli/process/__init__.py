"""Handles the command as a process: its streams, logs, signals and children."""
