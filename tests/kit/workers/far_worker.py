"""`python -m tests.kit.workers.far_worker URL NAME`: a real worker that believes it is on another machine."""

import logging
import sys

from tests.kit.brokers.message_key import MESSAGE_KEY

from oku_workers.process import Worker
from oku_workers.settings import WorkerSettings

if __name__ == "__main__":
    logging.basicConfig()
    settings = WorkerSettings(
        broker_url=sys.argv[1], message_key=MESSAGE_KEY, name=sys.argv[2], kernel="another machine"
    )
    sys.exit(Worker(settings).run())
