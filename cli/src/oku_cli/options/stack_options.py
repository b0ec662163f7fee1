"""The options of a local stack: its Loki, its broker, and what its runs may name.

A coordinator has its own settings.
"""

from dataclasses import dataclass, replace
from typing import Any

import click
from click.core import ParameterSource

from oku_cli.local.local_run import build_stack_plan
from oku_cli.local.stack_plan import StackPlan
from oku_cli.options.daemon.allow_options import confinement_options, secret_options
from oku_cli.options.daemon.retention_options import read_retention_variables
from oku_cli.options.loki_options import LokiOptions, loki_options, pick_loki_options
from oku_cli.options.option_group import OptionGroup, add_options, option
from oku_core.broker.broker_url import split_tls
from oku_core.errors import UserError
from oku_core.process.landlock import Confinement
from oku_core.spec.secrets import SecretSource
from oku_core.spec.spec import Spec

stack_options = add_options(
    loki_options,
    option(
        OptionGroup.BROKER,
        "--broker-url",
        metavar="URL",
        help="Broker of the local run, which no other coordinator uses: redis://, rediss://, redis+socket://"
        " or amqp://; default: none, a socket instead.",
    ),
    secret_options(has_variables=False),
    confinement_options(serves_others=False),
)
"""For a command whose function takes them for `StackOptions.pick`."""


@dataclass(frozen=True)
class StackOptions:
    """The options of a local stack, as they were given."""

    loki: LokiOptions
    secrets: SecretSource
    confinement: Confinement
    broker_url: str | None = None

    @classmethod
    def pick(cls, options: dict[str, Any]) -> "StackOptions":
        """Take these options out of all options of a command."""
        return cls(
            pick_loki_options(options),
            options.pop("secrets"),
            options.pop("confinement"),
            options.pop("broker_url"),
        )

    def refuse(self) -> None:
        """Refuse them at a remote coordinator: its operator has set it and its workers up."""
        if self.loki.loki:
            raise UserError(
                "--loki: is a setting of the coordinator; it cannot be combined with --coordinator"
            )
        is_required = self.confinement is Confinement.REQUIRED
        given = {
            "allow-env": self.secrets.variables,
            "secrets-dir": self.secrets.folder,
            "require-confinement": is_required,
            "confine-user-code": self.confinement is not Confinement.OFF,
            "broker-url": self.broker_url,
        }
        for flag, value in given.items():
            if value:
                raise UserError(f"--{flag}: is for a local stack; remote workers have their own settings")

    def check_grafana(self, grafana: str | None) -> str | None:
        """Refuse the flag for a run that writes to no Loki, whose dashboard is empty; ignore the variable."""
        if self.loki.loki:
            return grafana
        source = click.get_current_context().get_parameter_source("grafana")
        if grafana is not None and source is ParameterSource.COMMANDLINE:
            raise UserError("--grafana: shows what is in a Loki; name that by --loki")
        return None

    def build_plan(self, spec: Spec) -> StackPlan:
        """Plan a stack for a spec; `UserError` as `build_stack_plan`, or when a variable is wrong."""
        if self.broker_url is not None:
            split_tls(self.broker_url)
        plan = build_stack_plan(
            spec,
            self.secrets,
            self.loki.build_environment() | read_retention_variables(),
            has_loki=bool(self.loki.loki),
            confinement=self.confinement,
        )
        return replace(plan, broker_url=self.broker_url)
