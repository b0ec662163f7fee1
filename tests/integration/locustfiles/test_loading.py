"""What a locustfile finds when it is loaded, and why one is refused, in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kit.library_names import list_library_names
from tests.kit.servers.hostile_server import HostileServer
from tests.kit.workers.locust_bench import LocustBench, count_outcomes, count_requests

from oku_core.spec.values.load_values import StageText
from oku_workers.engines.contract.engine_protocol import EngineError

Build = Callable[..., LocustBench]

USER = """
from locust import FastHttpUser, LoadTestShape, events, task

class Visitor(FastHttpUser):
    @task
    def visit(self):
        self.client.get("/visit")
"""


def shape(*lines: str) -> str:
    """A locustfile with a shape."""
    body = "\n".join(f"        {line}" for line in lines)
    return f"{USER}\nclass Waves(LoadTestShape):\n    def tick(self):\n{body}\n"


SHAPED = "locustfile.py: the load is not shaped by LoadTestShape (Waves) but by --stage"
FROM_VARIABLES = "options come from variables such as LOCUST_NAME"
REFUSED = {
    "no user": (
        "import locust",
        "locustfile.py has no user class: a subclass of HttpUser, FastHttpUser or User",
    ),
    "not Python": ("class", "SyntaxError: invalid syntax (locustfile.py, line 1) (locustfile.py:1)"),
    "it raises": ("raise OSError('no')", "OSError: no (locustfile.py:1 in <module>)"),
    "a module is missing": (
        "import no_such_module",
        "ModuleNotFoundError: No module named 'no_such_module' (locustfile.py:1 in <module>)",
    ),
    "no host": (
        USER,
        "locustfile.py: Visitor has no host; say --host URL, or give the class one",
    ),
    "a shape": (
        shape(
            "now = self.get_run_time()",
            "return (10, 10) if now < 20 else (30, 2) if now < 60 else (0, 5) if now < 70 else None",
        ),
        f"{SHAPED}; here: --stage 20s:10..10 --stage 10s:10..30 --stage 30s:30 --stage 6s:30..0 --stage 4s:0",
    ),
    "a shape that looks at more than the time": (
        shape("return (self.get_current_user_count() + 1, 1)"),
        f"{SHAPED}, such as --stage 1m:0..50 --stage 10m:50; with a --stage the class is left alone",
    ),
    "a shape with many stages": (
        shape("step = int(self.get_run_time()) // 30 + 1", "return (step * 10, 10) if step <= 20 else None"),
        f"{SHAPED}; here: {' '.join(f'--stage 30s:{step}0..{step}0' for step in range(1, 21))}",
    ),
    "a shape with too many stages": (
        shape(
            "step = int(self.get_run_time()) // 300 + 1", "return (step * 999, 999) if step <= 45 else None"
        ),
        f"{SHAPED}, such as --stage 1m:0..50 --stage 10m:50; with a --stage the class is left alone",
    ),
    "a shape that cannot be made": (
        shape("return None").replace(
            "    def tick", "    def __init__(self):\n        1 / 0\n\n    def tick"
        ),
        f"{SHAPED}, such as --stage 1m:0..50 --stage 10m:50; with a --stage the class is left alone",
    ),
    "a shape that names no rate": (
        shape("return (10,)"),
        f"{SHAPED}, such as --stage 1m:0..50 --stage 10m:50; with a --stage the class is left alone",
    ),
    "a shape whose rate is none": (
        shape("return (10, float('inf')) if self.get_run_time() < 9 else None"),
        f"{SHAPED}, such as --stage 1m:0..50 --stage 10m:50; with a --stage the class is left alone",
    ),
    "an option that must be given": (
        USER + "events.init_command_line_parser.add_listener("
        "lambda parser, **_: parser.add_argument('--token', required=True))",
        f"locustfile.py: the following arguments are required: --token; {FROM_VARIABLES}",
    ),
    "an init that fails": (
        USER + "@events.init.add_listener\ndef begin(environment, **_):\n    1 / 0",
        "locustfile.py: a listener of init has failed; the log of the worker says why",
    ),
    "it ends at once": (
        USER + "@events.test_start.add_listener\ndef begin(environment, **_):\n    raise SystemExit(1)",
        "locustfile.py: a listener of test_start has failed: SystemExit: 1",
    ),
}


@pytest.mark.parametrize(("source", "reason"), REFUSED.values(), ids=REFUSED.keys())
async def test_what_cannot_run_is_refused_in_one_line(build: Build, source: str, reason: str) -> None:
    """It names the file, what is wrong and what to write instead."""
    with pytest.raises(EngineError) as caught:
        async with build(source, url=None):
            pass
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"user_classes": ("Nobody",)}, "locustfile.py has no user class Nobody, but Visitor"),
        ({"tags": ("nothing",)}, "locustfile.py has no task with these tags"),
    ],
)
async def test_a_choice_of_nothing_is_refused(
    build: Build, changes: dict[str, tuple[str, ...]], reason: str
) -> None:
    """It says what there is."""
    with pytest.raises(EngineError) as caught:
        async with build(USER, **changes):
            pass
    assert str(caught.value) == reason


async def test_with_stages_a_shape_is_left_alone(build: Build) -> None:
    """So the file need not be changed."""
    async with build(shape("return None"), stages=(StageText("1m:5"),)) as bench:
        execution = await bench.run(20)
    assert count_outcomes(execution) == {"ok": 20}


async def test_the_environment_is_what_locustfiles_expect(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options come from variables or their defaults, and there is a runner that says how many users work."""
    monkeypatch.setenv("LOCUST_COLOUR", "green")
    source = """
        from locust import FastHttpUser, events, runners, task

        @events.init_command_line_parser.add_listener
        def add(parser):
            parser.add_argument("--colour", env_var="LOCUST_COLOUR", default="red")
            parser.add_argument("--size", type=int, default=3)

        seen = []

        @events.init.add_listener
        def init(environment, runner, web_ui, **_):
            assert web_ui is None
            assert runner is environment.runner
            assert not isinstance(runner, (runners.MasterRunner, runners.WorkerRunner))
            seen.append("init")

        @events.test_start.add_listener
        def start(environment, **_):
            seen.append("test_start")

        @events.spawning_complete.add_listener
        def complete(user_count, **_):
            seen.append(user_count)

        class Visitor(FastHttpUser):
            @task
            def visit(self):
                options = self.environment.parsed_options
                assert (options.colour, options.size) == ("green", 3)
                assert options.headless
                assert self.environment.host == self.host == options.host
                assert self.environment.runner.user_count == 4
                assert self.environment.runner.target_user_count == 4
                assert self.environment.runner.state == "running"
                assert seen == ["init", "test_start", 4], seen
        """
    async with build(source, concurrency=4) as bench:
        execution = await bench.run(40)
    assert count_outcomes(execution) == {"ok": 40}, execution.tracebacks


async def test_a_configuration_of_locust_may_come_along(build: Build) -> None:
    """As a file of the run it stands beside the locustfile, where Locust looks for it."""
    source = """
        from locust import FastHttpUser, events, task

        @events.init_command_line_parser.add_listener
        def add(parser):
            parser.add_argument("--colour", default="red")

        class Visitor(FastHttpUser):
            @task
            def visit(self):
                self.client.get("/" + self.environment.parsed_options.colour)
        """
    async with build(source, files={"locust.conf": "colour = green\nusers = 70\n"}) as bench:
        execution = await bench.run(10)
    assert count_requests(execution) == {"GET /green": {"ok": 10}}


async def test_who_looks_at_statistics_finds_some(build: Build) -> None:
    """Those of this process alone; where no file has the word, Locust counts nothing twice."""
    source = """
        from locust import FastHttpUser, task

        class Visitor(FastHttpUser):
            @task
            def visit(self):
                self.client.get("/visit")
                assert self.environment.{0}.total.num_requests > 0
        """
    async with build(source.format("stats")) as bench:
        counted = await bench.run(20)
    assert count_outcomes(counted) == {"ok": 20}
    async with build(source.format("__dict__['st' + 'ats']")) as bench:
        uncounted = await bench.run(20)
    assert count_outcomes(uncounted) == {"exception": 20}


async def test_modules_and_files_come_along(build: Build) -> None:
    """What a locustfile imports and reads is where it was beside it."""
    source = """
        from pathlib import Path
        from common.visits import Base

        class Visitor(Base):
            path = "/" + Path("data/name.txt").read_text()
        """
    base = (
        "from locust import FastHttpUser, task\nclass Base(FastHttpUser):\n    abstract = True\n"
        "    @task\n    def visit(self):\n        self.client.get(self.path)\n"
    )
    files = {"common/visits.py": base, "data/name.txt": "hello"}
    async with build(source, files=files) as bench:
        execution = await bench.run(10)
    assert count_requests(execution) == {"GET /hello": {"ok": 10}}


async def test_each_index_has_its_row(build: Build, site: HostileServer) -> None:
    """By the names of the columns; after the last row they begin anew."""
    rows = 'name,town\nAnna,Rome\nBert,Oslo\nCarl,"Bad, Bath"\n'
    source = """
        from locust import FastHttpUser, task

        class Visitor(FastHttpUser):
            @task
            def visit(self):
                row = self.oku.row
                assert list(row) == ["name", "town"]
                self.client.get(f"/{self.oku.index}/{row['name']}")
                assert row["name"] != "Carl" or row["town"] == "Bad, Bath"
        """
    async with build(source, rows=rows) as bench:
        execution = await bench.run(6)
    assert count_outcomes(execution) == {"ok": 6}
    assert sorted(site.targets) == ["/0/Anna", "/1/Bert", "/2/Carl", "/3/Anna", "/4/Bert", "/5/Carl"]


async def test_without_locust_it_says_how_to_get_it(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than that a module is missing."""
    nothing = tmp_path / "elsewhere" / "locust"
    nothing.mkdir(parents=True)
    (nothing / "__init__.py").write_text("raise ModuleNotFoundError('gone', name='locust')")
    monkeypatch.setenv("PYTHONPATH", str(nothing.parent))
    with pytest.raises(EngineError) as caught:
        async with build(USER):
            pass
    assert str(caught.value) == "Locust is not installed beside this worker: pip install locust"


@pytest.mark.parametrize("name", ["requests.py", "locust.py"])
async def test_a_file_called_as_a_library_does_not_stand_in_for_it(build: Build, name: str) -> None:
    """One beside the locustfile is none of Locust's business."""
    async with build(USER, files={name: "raise RuntimeError('not me')"}) as bench:
        execution = await bench.run(10)
    assert count_outcomes(execution) == {"ok": 10}


@pytest.mark.parametrize("kind", ["HttpUser", "FastHttpUser"])
async def test_files_may_have_the_names_of_libraries(build: Build, kind: str) -> None:
    """Also of those that Locust needs, and of what it is still to load."""
    names = list_library_names()
    source = (
        "".join(f"import {name}\nassert {name}.OWN\n" for name in names)
        + f"from locust import {kind}, task\n\nclass Visitor({kind}):\n"
        "    @task\n    def visit(self):\n        self.client.get('/visit')\n"
    )
    async with build(source, files={f"{name}.py": "OWN = 1\n" for name in names}) as bench:
        execution = await bench.run(5)
    assert count_outcomes(execution) == {"ok": 5}


@pytest.mark.parametrize("path", ["locust.py", "requests.py", "gevent.py", "token.py", "load/http.py"])
async def test_a_locustfile_may_have_any_name(build: Build, path: str) -> None:
    """What it imports by its own name is the library."""
    source = f"import {Path(path).stem}\n{USER}"
    async with build(source, path=path) as bench:
        execution = await bench.run(5)
    assert count_outcomes(execution) == {"ok": 5}


async def test_user_classes_may_come_from_a_variable(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """As tags do; those of the spec go first."""
    monkeypatch.setenv("LOCUST_USER_CLASSES", "Nobody Visitor")
    with pytest.raises(EngineError, match="has no user class Nobody, but Visitor"):
        async with build(USER):
            pass
    async with build(USER, user_classes=("Visitor",)) as bench:
        execution = await bench.run(3)
    assert count_outcomes(execution) == {"ok": 3}


async def test_tags_may_come_from_a_variable(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the host does; those of the spec go first."""
    source = "from locust import tag" + USER.replace("    @task", "    @tag('slow')\n    @task")
    monkeypatch.setenv("LOCUST_EXCLUDE_TAGS", "slow")
    with pytest.raises(EngineError, match="has no task with these tags"):
        async with build(source):
            pass
    async with build(source, exclude_tags=("fast",)) as bench:
        execution = await bench.run(3)
    assert count_outcomes(execution) == {"ok": 3}
