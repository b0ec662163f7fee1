"""What runs without a target of their own ask Oku's delay servers."""

from collections.abc import Sequence

import msgspec

from oku_core.messaging.server_headers import DELAY_HEADER, RUN_HEADER, SEED_HEADER
from oku_core.spec.spec import Spec
from oku_core.spec.values.header import Header
from oku_core.spec.values.placeholder import INDEX_PLACEHOLDER
from oku_core.spec.values.url import Url


def ask_servers(spec: Spec, count_name: str, server_urls: Sequence[str]) -> Spec:
    """The spec as workers get it: as it is, unless it brings no target.

    Then it has the addresses of our own delay servers and the headers that tell them for which run a request
    counts, and the delay and the seed that it asks for. No other target hears of the run.

    Args:
        spec: of a run.
        count_name: the name under which they count its requests.
        server_urls: where the delay servers are.
    """
    if not spec.brings_servers:
        return spec
    headers = [Header(f"{RUN_HEADER}: {count_name}")]
    if spec.delay is not None:
        headers.append(Header(f"{DELAY_HEADER}: {spec.delay}"))
    if spec.seed is not None:
        headers.append(Header(f"{SEED_HEADER}: {spec.seed}"))
    path = "" if spec.targets else f"/{INDEX_PLACEHOLDER}"
    urls = tuple(Url(f"{url.rstrip('/')}{path}") for url in server_urls)
    return msgspec.structs.replace(spec, urls=urls, headers=(*spec.headers, *headers))
