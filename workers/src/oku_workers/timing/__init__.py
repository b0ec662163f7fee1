"""When it is: timers that wake the event loop to the microsecond, and the clock of the coordinator."""
