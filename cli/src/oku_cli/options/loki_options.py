"""The options for exporting results to Loki, besides the ledger: its address and the credentials."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oku_cli.options.option_group import OptionGroup, Parsed, add_options, naming, option
from oku_core.errors import UserError
from oku_core.spec.values.quantity import parse_size

if TYPE_CHECKING:
    from oku_coordinator.loki.endpoint import LokiTarget

_HELP = {
    "loki": ("URL", "OKU_LOKI_URL", "Also write results to this Loki, such as http://127.0.0.1:3100."),
    "loki_tenant": ("TEXT", "OKU_LOKI_TENANT", "Tenant (X-Scope-OrgID)."),
    "loki_username": ("TEXT", "OKU_LOKI_USERNAME", "User for basic authentication."),
    "loki_password": (
        "TEXT",
        "OKU_LOKI_PASSWORD",
        "Password; prefer OKU_LOKI_PASSWORD, flags are visible to others.",
    ),
    "loki_token": (
        "TEXT",
        "OKU_LOKI_TOKEN",
        "Bearer token; prefer OKU_LOKI_TOKEN, flags are visible to others.",
    ),
    "loki_ca": ("FILE", "OKU_LOKI_CA", "CA certificates to trust, PEM; default: the system's."),
    "loki_outbox": ("SIZE", "OKU_LOKI_OUTBOX", "Limit for lines in the ledger that wait for Loki."),
}
_LEAST_OUTBOX = 1_000_000


def parse_outbox_bytes(text: str) -> int:
    """The bound of the outbox; `ValueError` if it is not a size, or too small."""
    size = parse_size(text)
    if size < _LEAST_OUTBOX:
        raise ValueError(f"{text} is less than 1MB")
    return size


@dataclass(frozen=True, kw_only=True)
class LokiOptions:
    """The given options, under the names of the flags; the outbox is in bytes."""

    loki: str | None = None
    loki_tenant: str | None = None
    loki_username: str | None = None
    loki_password: str | None = None
    loki_token: str | None = None
    loki_ca: str | None = None
    loki_outbox: int = 256_000_000

    def build_target(self) -> "LokiTarget | None":
        """Where to, and as whom; None without a Loki. `UserError` when it cannot be."""
        if not self.loki:
            return None
        from oku_coordinator.loki.endpoint import LokiTarget  # noqa: PLC0415  # loads TLS, which most runs need not

        if self.loki_token and self.loki_username:
            raise UserError("--loki-token: cannot be combined with --loki-username")
        if self.loki_ca and not Path(self.loki_ca).is_file():
            raise UserError(f"--loki-ca: {self.loki_ca} is not a file")
        with naming("--loki"):
            return LokiTarget(
                url=self.loki,
                tenant=self.loki_tenant or "",
                username=self.loki_username or "",
                password=self.loki_password or "",
                token=self.loki_token or "",
                ca_file=Path(self.loki_ca).absolute() if self.loki_ca else None,
            )

    def build_environment(self) -> dict[str, str]:
        """The same for a coordinator that is started with it, in any folder; empty without a Loki."""
        if not self.loki:
            return {}
        ca_file = self.loki_ca and str(Path(self.loki_ca).absolute())
        values = asdict(replace(self, loki_ca=ca_file))
        return {variable: str(values[name]) for name, (_, variable, _) in _HELP.items() if values[name]}


def _build_option(name: str, metavar: str, variable: str, text: str) -> Callable[[Any], Any]:
    is_outbox = name == "loki_outbox"
    return option(
        OptionGroup.LOKI, f"--{name.replace('_', '-')}", metavar=metavar, envvar=variable, help=text,
        type=Parsed("size", parse_outbox_bytes) if is_outbox else None,
        default="256MB" if is_outbox else None, show_default=is_outbox,
    )  # fmt: skip


loki_options = add_options(*(_build_option(name, *texts) for name, texts in _HELP.items()))
"""`--loki` and its tenant, credentials, CA and outbox."""


def pick_loki_options(options: dict[str, Any]) -> LokiOptions:
    """Take these options out of all options of a command, and see whether they can be."""
    picked = LokiOptions(**{name: options.pop(name) for name in _HELP})
    picked.build_target()
    return picked
