"""Dealing of open runs: the schedule is cut into waves ahead of time, and each wave into lanes."""
