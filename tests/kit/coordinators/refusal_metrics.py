"""Metrics that keep the refusals they count."""

from oku_coordinator.telemetry.prometheus.metrics import Metrics
from oku_core.messaging.credentials import Credential, CredentialFault


class RefusalMetrics(Metrics):
    """Keeps each refused caller's credential, and what was wrong with it."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[tuple[Credential, CredentialFault]] = []

    def count_refusal(self, credential: Credential, refusal: CredentialFault) -> None:
        """Keep it."""
        self.refusals.append((credential, refusal))
