"""Rates over a run or a phase of it: one definition for all that shows one."""


def measure_rate(requests: float, seconds: float) -> float:
    """How many requests there were per second; 0 if no time has passed."""
    return requests / seconds if seconds > 0 else 0.0
