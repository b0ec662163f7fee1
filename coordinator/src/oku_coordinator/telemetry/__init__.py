"""The output about runs: ticks, history, lines for Loki, metrics for Prometheus."""
