"""What the health port of a worker answers, as a probe of Kubernetes asks it."""

import urllib.error
import urllib.request


def probe(port: int, path: str = "/healthz", timeout_s: float = 10.0) -> int:
    """Ask on loopback; the status."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=timeout_s) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
