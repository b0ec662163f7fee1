"""A run as people, scripts and dashboards read it: its summary, its validity, and its ticks."""
