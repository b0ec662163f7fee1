"""The periodic work: rounds of the main loop, ticks, and the handling of worker messages."""
