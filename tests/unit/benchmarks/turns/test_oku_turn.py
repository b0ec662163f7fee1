from oku_benchmarks.turns.oku_turn import HTTPTOOLS, Load


def test_a_spec_says_what_is_asked_in_place_of_the_url() -> None:
    """How much, and by which engine, is still said by flags."""
    load = Load(requests=10, concurrency=2, engine=HTTPTOOLS, spec="answers.json")

    words = load.build_flags("http://127.0.0.1:8080/{i}")

    assert words[0] == "answers.json"
    assert "--url" not in words
    assert words[words.index("--requests") + 1] == "10"


def test_without_a_spec_the_url_is_a_flag() -> None:
    """There is nothing before the flags then."""
    words = Load(requests=10, concurrency=2).build_flags("http://127.0.0.1:8080/{i}")

    assert words[:2] == ["--url", "http://127.0.0.1:8080/{i}"]
