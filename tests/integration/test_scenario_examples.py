"""The examples of docs/scenarios.md, each run against a real shop, and counted."""

from pathlib import Path

import pytest
from tests.kit.servers.shop import Shop
from tests.kit.workers.user_code_bench import UserCodeBench

FOLDER = Path("docs/examples/scenarios")
PAGE = Path("docs/scenarios.md")
ITERATIONS = 20
REQUESTS: dict[str, dict[str, int]] = {
    "login_and_token.py": {"login": 1, "order": 1},
    "session_with_think_time.py": {"home": 1, "product": 2, "fill cart": 2, "cart": 1},
    "upload.py": {"upload": 1},
    "pagination.py": {"login": 1, "page of orders": 3},
    "json_checks.py": {"login": 1, "order": 1, "product": 1, "price of all": 1},
}
"""How many requests of each name an iteration of an example makes."""


def test_every_example_is_run() -> None:
    """One that is new is counted here as well."""
    assert {path.name for path in FOLDER.glob("*.py")} == REQUESTS.keys()


@pytest.mark.parametrize("name", REQUESTS)
def test_an_example_stands_in_the_page_as_it_is_run(name: str) -> None:
    """Whoever copies it from there has what was tried here."""
    shown = f"<!-- file: {name} -->\n```python\n{(FOLDER / name).read_text()}```\n"
    assert shown in PAGE.read_text()


@pytest.mark.parametrize("name", REQUESTS)
async def test_an_example_runs(tmp_path: Path, name: str) -> None:
    """All its iterations are ok, and each makes exactly its requests."""
    async with Shop() as shop:
        files = {"picture.svg": (FOLDER / "picture.svg").read_bytes()}
        account = await UserCodeBench(tmp_path).run(
            (FOLDER / name).read_bytes(), ITERATIONS, files, base_url=shop.url
        )
    assert (account.outcomes, account.reasons) == ({"ok": ITERATIONS}, {})
    assert account.inner == {request: {"ok": count * ITERATIONS} for request, count in REQUESTS[name].items()}
    sent = sum(count for request, count in REQUESTS[name].items() if request != "price of all")
    assert shop.asked.total() == sent * ITERATIONS


async def test_what_the_example_uploads_arrives(tmp_path: Path) -> None:
    """The picture as it lies beside the scenario, and a note for each index."""
    picture = (FOLDER / "picture.svg").read_bytes()
    async with Shop() as shop:
        await UserCodeBench(tmp_path).run(
            (FOLDER / "upload.py").read_bytes(), 3, {"picture.svg": picture}, base_url=shop.url
        )
    assert sorted(shop.uploads) == [
        *(("note", "note.txt", "text/plain", f"This is upload {index}.".encode()) for index in range(3)),
        *[("picture", "picture.svg", "image/svg+xml", picture)] * 3,
    ]
