"""Lines to Loki, each exactly once as far as Loki lets it be known.

`LokiPusher` takes entries, cuts them into batches of one stream each, and brings every batch to Loki's push
API until it was taken or refused for good. It knows nothing of Oku.
"""
