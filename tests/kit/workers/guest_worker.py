"""A worker beside those of a local stack with a broker, whose data folder has the key of its messages."""

from tests.kit.runs.local_run import OKU, LocalRun


def build_guest(run: LocalRun, name: str) -> list[str]:
    """The command of one."""
    key = ("--message-key-file", str(run.data_dir / "message.key"))
    arguments = run.process.args
    assert isinstance(arguments, list)
    broker_url = arguments[arguments.index("--broker-url") + 1]
    return [*OKU, "worker", "--broker-url", str(broker_url), "--name", name, *key]
