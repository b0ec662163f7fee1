"""A `kubectl` for tests: answers from `kubectl.json` beside it, and forwards ports to what it is told there.

Keys: `services`, `secrets` and `events` (lists), `COMPONENT pods` and `COMPONENT deployments` (lists of those
with that label), `context` (the current one), `errors` (by the words of a call), `target` (host and port that
is forwarded to), `calls` (a file that gets a line for each call).
"""

import json
import socket
import sys
import threading
from pathlib import Path
from typing import Any


def main() -> int:
    """Do what the arguments say, as far as this fake supports it."""
    settings = json.loads((Path(sys.argv[0]).parent / "kubectl.json").read_text())
    words = " ".join(sys.argv[1:])
    with Path(settings["calls"]).open("a") as calls:
        calls.write(f"{words}\n")
    for call, error in settings.get("errors", {}).items():
        if call in words:
            sys.stderr.write(error + "\n")
            return 1
    if "config current-context" in words:
        return 0 if settings.get("context") else 1
    if "port-forward" in words:
        return forward(words.split()[-1], settings["target"])
    wanted = words.partition("get ")[2].split()[0]
    kind, _, name = wanted.partition("/")
    return print_object(settings["secrets"], name) if kind == "secret" else print_list(settings, kind, words)


def print_list(settings: dict[str, Any], kind: str, words: str) -> int:
    """Print the objects of a kind, of one component if they are selected by that."""
    component = words.partition("app.kubernetes.io/component=")[2].partition(",")[0].split(" ")[0]
    key = f"{component} {kind}"
    items = settings.get(key, []) if kind in {"pods", "deployments"} else settings.get(kind, [])
    sys.stdout.write(json.dumps({"kind": "List", "items": items}))
    return 0


def print_object(objects: list[dict[str, Any]], name: str) -> int:
    """Print the object of this name, or what kubectl says if there is none."""
    for each in objects:
        if each["metadata"]["name"] == name:
            sys.stdout.write(json.dumps(each))
            return 0
    sys.stderr.write(f'Error from server (NotFound): secrets "{name}" not found\n')
    return 1


def forward(ports: str, target: list[str | int]) -> int:
    """Listen, and pass every connection on."""
    listening = socket.create_server(("127.0.0.1", int(ports.split(":", maxsplit=1)[0] or 0)))
    sys.stdout.write(f"Forwarding from 127.0.0.1:{listening.getsockname()[1]} -> {ports.split(':')[1]}\n")
    sys.stdout.flush()
    while True:
        near = listening.accept()[0]
        try:
            far = socket.create_connection((str(target[0]), int(target[1])))
        except OSError:
            sys.stderr.write("error: lost connection to pod\n")
            return 1
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=pump, args=(source, sink), daemon=True).start()


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Pass bytes on until there are no more."""
    try:
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


if __name__ == "__main__":
    sys.exit(main())
