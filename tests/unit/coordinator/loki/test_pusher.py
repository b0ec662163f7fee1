import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.kit.loki.fake_loki import NOW_NS, FakeLoki, answer, cut, make_entries
from tests.kit.servers.certificates import Certificates

from oku_coordinator.loki.batch import Entry, Refusal
from oku_coordinator.loki.endpoint import LokiTarget
from oku_coordinator.loki.pusher import LokiPusher

MakePusher = Callable[..., LokiPusher]


class Diary(Protocol):
    """The diary of the pusher."""

    pauses: list[float]
    troubles: list[str]

    async def sleep(self, pause_s: float) -> None:
        """Take no time."""


def text_of(entries: list[Entry]) -> list[str]:
    """Their lines."""
    return [entry.line for entry in entries]


async def test_lines_arrive_in_their_order_without_a_word(
    loki: FakeLoki, pusher: LokiPusher, diary: Diary
) -> None:
    """Each stream is one request: of several, Loki would tell what became of the last only."""
    first, second = make_entries(3, kind="tick"), make_entries(2, kind="range")
    mixed = [first[0], second[0], first[1], second[1], first[2]]
    assert await pusher.push(mixed) == []
    assert [[line for _, _, line in push] for push in loki.pushes] == [text_of(first), text_of(second)]
    assert [at for _, at, _ in loki.pushes[0]] == [NOW_NS, NOW_NS + 1, NOW_NS + 2]
    assert (diary.pauses, diary.troubles, loki.queries) == ([], [], [])


async def test_queries_say_who_asks_too(loki: FakeLoki, url: str, make_pusher: MakePusher) -> None:
    """They ask for neither a cached answer nor metadata among the labels."""
    async with make_pusher(LokiTarget(url=url, tenant="team-a", token="t")) as pusher:
        await pusher.push(make_entries(1))
    headers = loki.headers[0]
    assert (headers["X-Scope-OrgID"], headers["Authorization"]) == ("team-a", "Bearer t")
    assert headers["Cache-Control"] == "no-cache"
    assert headers["X-Loki-Response-Encoding-Flags"] == "categorize-labels"


async def test_only_authorities_that_were_given_are_trusted(
    loki: FakeLoki, make_pusher: MakePusher, diary: Diary, tmp_path: Path
) -> None:
    """Without them nothing is sent, and nothing has to be asked."""
    certificates = Certificates(tmp_path)
    server = TestServer(loki.make_app(), scheme="https")
    await server.start_server(ssl=certificates.server)
    url = f"https://127.0.0.1:{server.port}"
    async with make_pusher(LokiTarget(url=url, ca_file=Path(certificates.cacert))) as pusher:
        await pusher.push(make_entries(1))
    async with make_pusher(LokiTarget(url=url), is_in_doubt=False) as pusher:
        await give_up(pusher, make_entries(1, first=1), diary)
    await server.close()
    assert loki.texts == ["line 0"]
    assert len(diary.troubles) == 1
    assert "CERTIFICATE_VERIFY_FAILED" in diary.troubles[0]


async def test_what_loki_does_not_take_for_now_is_tried_again(
    loki: FakeLoki, pusher: LokiPusher, diary: Diary
) -> None:
    """Pauses grow; after each, Loki is asked twice, a second apart, which lines it has."""
    loki.faults += [answer(500, "a"), answer(503, "b"), answer(429, "c"), answer(408, "d")]
    assert await pusher.push(make_entries(2)) == []
    assert loki.texts == ["line 0", "line 1"]
    assert diary.pauses == [0.5, 1.0, 1.0, 1.0, 2.0, 1.0, 4.0, 1.0]
    assert diary.troubles == ["500 a", "503 b", "429 c", "408 d", ""]


async def test_trouble_is_told_when_it_begins_changes_and_ends(
    loki: FakeLoki, pusher: LokiPusher, diary: Diary
) -> None:
    """Other answers are not told, whatever numbers stand in their text."""
    loki.faults += [answer(429, f"limit, {number} bytes") for number in range(5)]
    loki.faults += [answer(500), answer(500)]
    await pusher.push(make_entries(1))
    assert diary.troubles == ["429 limit, 0 bytes", "500 Internal Server Error", ""]
    await pusher.push(make_entries(1, first=1))
    assert diary.troubles[-1:] == [""]
    assert len(diary.troubles) == 3


async def test_a_pause_that_loki_asks_for_is_kept_within_bounds(
    loki: FakeLoki, pusher: LokiPusher, diary: Diary
) -> None:
    """It is in seconds; what is not a number is ignored."""
    times = ["7", "99999", "0", "Wed, 21 Oct 2015 07:28:00 GMT", "-1"]
    loki.faults += [answer(429, Retry_After=time) for time in times]
    await pusher.push(make_entries(1))
    assert [pause for pause in diary.pauses if pause != 1.0] == [7.0, 120.0, 2.0, 4.0, 8.0]


async def test_pauses_have_an_end_to_their_growth_and_full_jitter(
    loki: FakeLoki, url: str, diary: Diary
) -> None:
    """Any share of the longest one may be drawn."""
    shares = iter([1.0, 0.0, 0.25, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0])
    pusher = LokiPusher(
        LokiTarget(url=url), sleep=diary.sleep, uniform=lambda: next(shares), is_in_doubt=False
    )
    loki.faults += [answer(404) for _ in range(2)] + [answer(500) for _ in range(1)]
    async with pusher:
        await pusher.push(make_entries(1))
    assert diary.pauses == [30.0, 0.0, 0.5, 1.0]
    loki.faults += [answer(500) for _ in range(6)]
    loki.query_faults += [answer(404) for _ in range(12)]
    diary.pauses.clear()
    async with LokiPusher(
        LokiTarget(url=url), sleep=diary.sleep, uniform=lambda: 1.0, is_in_doubt=False
    ) as pusher:
        await pusher.push(make_entries(1))
    assert [pause for pause in diary.pauses if pause != 1.0] == [0.5, 2.0, 4.0, 8.0, 16.0]


@pytest.mark.parametrize("status", [301, 401, 403, 404, 405, 415])
async def test_a_wrong_password_or_path_costs_no_line(
    loki: FakeLoki, pusher: LokiPusher, diary: Diary, status: int
) -> None:
    """Nothing was said about the lines: long pauses, loud words, and no question as nothing was stored."""
    loki.faults += [answer(status, "no\nentry"), answer(status, "no\nentry")]
    assert await pusher.push(make_entries(1)) == []
    assert loki.texts == ["line 0"]
    assert diary.pauses == [30.0, 30.0]
    assert diary.troubles == [f"{status} no entry", ""]
    assert loki.queries == []


@pytest.mark.parametrize("status", [260, 413, 422])
async def test_what_loki_will_never_take_is_given_back(
    loki: FakeLoki, pusher: LokiPusher, diary: Diary, status: int
) -> None:
    """The refusal has Loki's words, there is no second try, and the other lines go on."""
    loki.faults.append(answer(status, "too\x00 \nmuch " + "x" * 999))
    bad, good = make_entries(2, kind="bad"), make_entries(2, first=2, kind="good")
    (refusal,) = await pusher.push(bad + good)
    assert (refusal.entries, refusal.status) == (bad, status)
    assert refusal.reason.startswith("too\ufffd much xxx")
    assert len(refusal.reason) == 300
    assert loki.texts == ["line 2", "line 3"]
    assert (diary.pauses, diary.troubles) == ([], [])


async def test_all_are_refused_when_loki_can_not_be_asked_which(
    loki: FakeLoki, pusher: LokiPusher, diary: Diary
) -> None:
    """Neither a push nor a query may have such labels."""
    entries = make_entries(5, kind="bad")
    loki.faults.append(answer(400, "bad labels"))
    loki.query_faults.append(answer(400, "parse error"))
    assert await pusher.push(entries) == [Refusal(entries, 400, "bad labels")]
    assert diary.troubles == [
        "it cannot be queried, so some lines may be stored twice: 400 parse error",
        "",
    ]


@pytest.mark.parametrize("fault", [cut, lambda stored: answer(500, stored=stored),
                                   lambda stored: answer(429, stored=stored)])  # fmt: skip
@pytest.mark.parametrize("stored", [0, 2, 5])
async def test_only_lines_that_loki_does_not_have_are_sent_again(
    loki: FakeLoki, pusher: LokiPusher, fault: Callable[..., Any], stored: int
) -> None:
    """This is after an answer, or none, that says nothing of what was stored."""
    loki.faults.append(fault(stored=stored))
    assert await pusher.push(make_entries(5)) == []
    assert loki.texts == text_of(make_entries(5))
    assert len(loki.pushes) == (1 if stored == 5 else 2)


async def test_the_first_push_asks_what_the_process_before_it_has_left_open(
    loki: FakeLoki, url: str, make_pusher: MakePusher, diary: Diary
) -> None:
    """It may have been killed between Loki's answer and the end of its own work; later ones need not ask."""
    loki.store([({"app": "test"}, NOW_NS, "line 0")])
    async with make_pusher(LokiTarget(url=url)) as pusher:
        await pusher.push(make_entries(2))
        await pusher.push(make_entries(2, first=2))
    assert loki.texts == [f"line {number}" for number in range(4)]
    assert len(loki.queries) == 1
    assert diary.pauses == []


async def test_a_push_that_was_given_up_is_in_doubt(loki: FakeLoki, pusher: LokiPusher) -> None:
    """The next one asks."""
    stored = asyncio.Event()

    async def stall(loki: FakeLoki, request: web.Request) -> web.StreamResponse:
        await answer(204, stored=9)(loki, request)
        stored.set()
        await asyncio.Event().wait()
        return web.Response()

    loki.faults.append(stall)
    task = asyncio.create_task(pusher.push(make_entries(2)))
    await stored.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await pusher.push(make_entries(3))
    assert loki.texts == ["line 0", "line 1", "line 2"]


async def test_nothing_is_asked_when_nothing_was_sent(
    make_pusher: MakePusher, diary: Diary, unused_tcp_port: int
) -> None:
    """A connection that was refused is tried again until somebody listens."""
    target = LokiTarget(url=f"http://127.0.0.1:{unused_tcp_port}")
    async with make_pusher(target, is_in_doubt=False) as pusher:
        await give_up(pusher, make_entries(1), diary)
        assert pusher.is_in_doubt
    assert diary.pauses[:8] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert len(diary.troubles) == 1
    assert diary.troubles[0].endswith(": Connection refused")


async def test_a_query_that_fails_is_tried_again(loki: FakeLoki, pusher: LokiPusher, diary: Diary) -> None:
    """Loki may come up piece by piece."""
    loki.faults.append(cut(stored=1))
    loki.query_faults += [answer(500, "empty ring"), cut(), answer(429), answer(204)]
    await pusher.push(make_entries(2))
    assert loki.texts == ["line 0", "line 1"]
    assert diary.troubles[1] == "500 empty ring"
    assert diary.troubles[-2].startswith("it cannot be queried")  # 204 is no answer to a question
    assert diary.troubles[-1] == ""


async def test_what_loki_has_is_read_page_by_page(loki: FakeLoki, url: str, make_pusher: MakePusher) -> None:
    """The streams that a selector takes may hold more lines than a page."""
    others = [({"app": "test", "late": "true"}, NOW_NS + number // 3, f"o{number}") for number in range(2500)]
    loki.store(others)
    loki.faults.append(cut(stored=1500))
    async with make_pusher(LokiTarget(url=url), lines=2000) as pusher:
        await pusher.push(make_entries(2000))
    assert [line for labels, _, line in loki.lines if "late" not in labels] == text_of(make_entries(2000))
    assert {query["limit"] for query in loki.queries} == {"1000"}
    assert loki.queries[0]["start"] == str(NOW_NS)
    assert loki.queries[0]["end"] == str(NOW_NS + 2000)


async def test_more_lines_of_one_moment_than_a_page_holds_end_the_reading(
    loki: FakeLoki, url: str, make_pusher: MakePusher
) -> None:
    """It comes to an end, whatever it has missed of that moment."""
    loki.store([({"app": "test"}, NOW_NS, f"o{number}") for number in range(1500)])
    loki.store([({"app": "test"}, NOW_NS + 1, "line 1")])
    async with make_pusher(LokiTarget(url=url)) as pusher:
        await pusher.push(make_entries(2))
    assert loki.texts[-2:] == ["line 1", "line 0"]


async def give_up(pusher: LokiPusher, entries: list[Entry], diary: Diary) -> None:
    """Push until ten pauses were made."""
    task = asyncio.create_task(pusher.push(entries))
    while len(diary.pauses) < 10:  # noqa: ASYNC110  # there is nothing to wait on
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
