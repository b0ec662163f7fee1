"""The Grafana dashboards of Oku as code: from LogQL and panels to JSON.

`dashboard_files` says which file has which dashboard; docs/tools/generate.py writes and checks them.
"""
