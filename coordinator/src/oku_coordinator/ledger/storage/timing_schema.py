"""What accounts have since version 12 of how the time of requests is split: five histograms."""

from oku_core.accounting.measured_time import DUE_TIMES, Time

_FIGURES = ("sum_us", "sum_us_high", "min_us", "max_us")
TIMING_COLUMNS = "".join(
    f"""
ALTER TABLE accounts ADD COLUMN {name} BLOB;
{"".join(f"ALTER TABLE accounts ADD COLUMN {name}_{each} INTEGER NOT NULL DEFAULT 0;" for each in _FIGURES)}
"""
    for name in Time
    if name not in (Time.LATENCY, *DUE_TIMES)
)
