"""Lines to Loki, each exactly once as far as Loki lets it be known.

`LokiPusher` takes entries, cuts them into batches of one stream each, and brings every batch to Loki's push
API until it was taken or refused for good. It knows nothing of Oku.
"""

from oku_coordinator.loki.batch import Entry, Refusal
from oku_coordinator.loki.endpoint import LokiTarget
from oku_coordinator.loki.pusher import Limits, LokiPusher

__all__ = ["Entry", "Limits", "LokiPusher", "LokiTarget", "Refusal"]
