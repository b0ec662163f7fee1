"""What can be done with runs, and what decides when a run begins, waits, ends or is deleted."""
