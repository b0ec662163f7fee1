"""Grafana dashboards as values: LogQL, panels, their kinds and colours, and the JSON of a dashboard."""
