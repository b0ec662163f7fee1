"""The clock of schedules: kept over restarts, and told to workers."""
