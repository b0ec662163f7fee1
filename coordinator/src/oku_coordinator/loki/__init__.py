"""Sends lines to Loki, each exactly once as far as Loki allows.

`LokiPusher` cuts entries into batches of one stream each and sends every batch to Loki's push API until it is
accepted or rejected for good. It is independent of Oku.
"""
