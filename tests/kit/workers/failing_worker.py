"""`python -m tests.kit.workers.failing_worker URL`: a real worker whose every supervised task fails once."""

import logging
import sys

from tests.kit.brokers.message_key import MESSAGE_KEY
from tests.kit.faults.failing_tasks import FailingSupervisor

from oku_workers.process import Worker
from oku_workers.settings import WorkerSettings

if __name__ == "__main__":
    logging.basicConfig()
    settings = WorkerSettings(broker_url=sys.argv[1], message_key=MESSAGE_KEY, name="failing")
    sys.exit(Worker(settings, FailingSupervisor).run())
