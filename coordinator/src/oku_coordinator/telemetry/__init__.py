"""What is shown of runs: ticks, history, lines for Loki, metrics for Prometheus."""
