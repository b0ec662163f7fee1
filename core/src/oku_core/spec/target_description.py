"""What a run asks, in a few words that hold no secrets: its URL, or the names of its targets."""

from oku_core.spec.spec import Spec
from oku_core.spec.values.url import Url

OWN_SERVERS = "delay servers"
LONGEST_URL = 60
"""Characters; a longer URL is cut."""
MOST_NAMED = 3
"""How many targets are named."""


def describe_target(spec: Spec) -> str:
    """The target in words: `http://host/items/{i}`, `item, buy at https://shop.example`, `delay servers`."""
    if spec.scenario is not None:
        name = spec.scenario.path
        return name if spec.base_url is None else f"{name} at {_shorten(spec.base_url)}"
    places = list(dict.fromkeys(_shorten(url) for url in spec.list_places()))
    place = _join(places, 1) if places else OWN_SERVERS
    names = [target.name for target in spec.targets]
    return f"{_join(names, MOST_NAMED)} at {place}" if names else place


def _join(items: list[str], most: int) -> str:
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return f"{', '.join(items[:most])}{more}"


def _shorten(url: Url) -> str:
    """Leave out the user and the query of a URL, which may be secret."""
    query = "?…" if url.query else ""
    text = f"{url.scheme}://{url.authority.rpartition('@')[2]}{url.path}"
    most = LONGEST_URL - len(query)
    return f"{text[: most - 1]}…" if len(text) > most else f"{text}{query}"
