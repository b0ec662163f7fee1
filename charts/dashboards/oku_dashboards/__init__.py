"""The Grafana dashboards of Oku as code: from LogQL and panels to JSON.

`files` says what is written where; docs/tools/generate.py writes and checks it.
"""
