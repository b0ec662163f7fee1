"""A `kubectl` on the PATH of a test: what it is told to know, and the processes that forward its ports."""

import asyncio
import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.unit.cli import fake_kubectl

TOKEN = "from-the-secret"


class KubectlOnPath:
    """Puts a `kubectl` on the PATH that gives prepared answers."""

    def __init__(self, folder: Path, target: list[Any]) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = {
            "calls": str(folder / "calls"),
            "context": "kind",
            "target": target,
            "services": [build_service("demo")],
            "secrets": [build_secret(TOKEN)],
        }
        program = folder / "kubectl"
        program.write_text(f"#!{sys.executable}\n{Path(fake_kubectl.__file__).read_text()}")
        program.chmod(0o755)
        self.set()

    def set(self, **settings: Any) -> None:
        """Change what it answers."""
        self.settings |= settings
        (self.folder / "kubectl.json").write_text(json.dumps(self.settings))

    @property
    def calls(self) -> list[str]:
        """How it was called."""
        return (self.folder / "calls").read_text().splitlines()


def build_service(release: str, *ports: dict[str, Any]) -> dict[str, Any]:
    """The Service of a coordinator."""
    return {
        "metadata": {
            "name": f"{release}-oku",
            "labels": {"app.kubernetes.io/instance": release},
            "annotations": {"oku/token-secret": "s/token"},
        },
        "spec": {"ports": list(ports) or [{"name": "http", "port": 8700}]},
    }


def build_secret(token: str, key: str = "token") -> dict[str, Any]:
    """A Secret with one key."""
    return {"metadata": {"name": "s"}, "data": {key: base64.b64encode(token.encode()).decode()}}


def find_forwards(kubectl: KubectlOnPath) -> list[int]:
    """The processes that forward a port."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if (
                str(kubectl.folder / "kubectl").encode() in command
                and b"port-forward" in command
                and state != "Z"
            ):
                found.append(int(entry.name))
    return found


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what others do."""
    async with asyncio.timeout(8):
        while not condition():  # noqa: ASYNC110  # processes are asked, they do not call
            await asyncio.sleep(0.02)
