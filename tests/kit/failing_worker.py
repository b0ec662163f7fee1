"""`python -m tests.kit.failing_worker URL`: a real worker whose every supervised task fails once."""

import logging
import sys

from tests.kit.faults import FailingSupervisor

from oku_workers.process import Worker
from oku_workers.settings import WorkerSettings

if __name__ == "__main__":
    logging.basicConfig()
    sys.exit(Worker(WorkerSettings(broker_url=sys.argv[1], name="failing"), FailingSupervisor).run())
