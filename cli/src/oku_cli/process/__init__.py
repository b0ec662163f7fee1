"""The command as a process: its streams, its logs, its signals."""
