"""How the processes of Oku write their logs: one line an event, on standard error."""

import logging


def configure_logs(level: int = logging.INFO) -> None:
    """Log from `level` on; libraries from warnings on."""
    logging.basicConfig(format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", level=logging.WARNING)
    for name in ("oku_coordinator", "oku_workers", "oku_server", "oku_cli"):
        logging.getLogger(name).setLevel(level)
