"""The Grafana dashboards of Oku as code: from LogQL and panels to JSON.

`dashboards` lists every panel of every dashboard; docs/tools/generate.py writes and checks the files.
"""
