"""The clock of schedules: it survives restarts, and workers follow it."""
