"""Loads a locustfile, and makes the environment of Locust for it."""

import contextlib
import importlib
import io
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import locust
from locust import FastHttpUser, HttpUser, TaskSet, User, argument_parser, log
from locust.env import Environment
from locust.event import EventHook
from locust.util.load_locustfile import is_shape_class, is_user_class

from oku.locust_host.clients import set_up_clients
from oku.locust_host.runner import OkuRunner, reads_stats
from oku.locust_host.shapes import refuse_shape
from oku.locust_host.user_state import NamedRows, SharedData
from oku.sandbox.user_module import LoadError, load_module
from oku_core.data.data_format import DataError
from oku_core.data.escape import AS_TEXT
from oku_core.data.row_reader import RowReader, Value
from oku_core.json_reader import decode_json
from oku_core.spec.spec import Spec
from oku_core.spec.values.template import read_literally
from oku_core.user_code.messages import Start

_log = logging.getLogger(__name__)

_CONFIG_FILES = ("locust.conf", "pyproject.toml")


class Installer(Protocol):
    """Has Locust do as the host wants, before user code is loaded."""

    def install(self, data: SharedData) -> None:
        """Patch Locust."""
        ...

    def quit(self, reason: str) -> None:
        """User code has ended the test."""
        ...


@dataclass(frozen=True)
class Loaded:
    """A locustfile that was loaded.

    Attributes:
        environment: of Locust, with its runner.
        runner: the same.
        has_farewell: whether its users do something when they stop.
    """

    environment: Environment
    runner: OkuRunner
    has_farewell: bool


def load(start: Start, spec: Spec, installer: Installer) -> Loaded:
    """Load the locustfile of a spec, and let it get ready: `init` and `test_start` have been told of.

    Raises:
        LoadError: it cannot be run, with the reason in one line.
    """
    assert spec.scenario is not None
    folder, file = Path(os.fsdecode(start.folder)), spec.scenario.path
    paths = {digest: os.fsdecode(path) for digest, path in start.paths.items()}
    installer.install(SharedData(_open_rows(spec, paths), decode_json(start.setup_data)))
    set_up_clients(spec, paths)
    module = _import(folder, file)
    options = _parse_options(spec, start, file)
    classes = _choose_classes(module, options.user_classes, file)
    _check_shapes(module, spec, file)
    log.setup_logging(options.loglevel or "INFO")
    environment = _build_environment(classes, options, file)
    runner = OkuRunner(environment, installer, keeps_stats=reads_stats(folder))
    environment.runner = runner
    runner.target_user_count = options.num_users
    _get_ready(environment, file)
    _check_classes(environment, file)
    return Loaded(environment, runner, any(map(_has_farewell, environment.user_classes)))


def _open_rows(spec: Spec, paths: Mapping[str, str]) -> NamedRows | None:
    """Open the data of a spec; None if there is no data.

    Args:
        spec: the spec.
        paths: where its files are, by their digests.

    Raises:
        LoadError: they cannot be opened.
    """
    data = spec.data
    if data is None:
        return None
    values = [Value(column, AS_TEXT) for column in data.columns]
    try:
        reader = RowReader(data.locate(lambda digest: Path(paths[digest])), values)
    except DataError as error:
        raise LoadError(f"data {data.name} cannot be used: {error}") from error
    return NamedRows(reader, data.columns)


def _has_farewell(kind: type[User] | type[TaskSet]) -> bool:
    """Whether a class of users or of tasks, or one within it, has an `on_stop` of its own."""
    inherited = User.on_stop if issubclass(kind, User) else TaskSet.on_stop
    within = {each for each in kind.tasks if isinstance(each, type) and issubclass(each, TaskSet)}
    return kind.on_stop is not inherited or any(_has_farewell(each) for each in within - {kind})


def _import(folder: Path, file: str) -> ModuleType:
    sys.argv = [str(folder / file)]
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("locust_plugins")  # as Locust itself does: it registers arguments
    return load_module(folder, file)


def _choose_classes(module: ModuleType, chosen: Sequence[str], file: str) -> dict[str, type[User]]:
    found = {name: kind for name, kind in vars(module).items() if is_user_class(kind)}
    if not found:
        has_tests = any(name.startswith("test_") for name in vars(module))
        why = "; functions of pytest are not run" if has_tests else ""
        raise LoadError(f"{file} has no user class: a subclass of HttpUser, FastHttpUser or User{why}")
    if unknown := [name for name in chosen if name not in found]:
        raise LoadError(f"{file} has no user class {unknown[0]}, but {', '.join(found)}")
    return {name: kind for name, kind in found.items() if not chosen or name in chosen}


def _check_shapes(module: ModuleType, spec: Spec, file: str) -> None:
    shapes = [kind for kind in vars(module).values() if is_shape_class(kind)]
    if not shapes:
        return
    if not spec.stages:
        raise LoadError(refuse_shape(shapes[0], file))
    _log.warning("%s is left alone: the run has stages", shapes[0].__name__)


def _parse_options(spec: Spec, start: Start, file: str) -> Any:
    """The options of Locust, and those that the locustfile has added: from LOCUST_…, or their defaults."""
    said = io.StringIO()
    parser = argument_parser.get_parser(default_config_files=_CONFIG_FILES)
    try:
        with contextlib.redirect_stderr(said):
            options: Any = parser.parse_args(args=[])
    except SystemExit:
        text = " ".join(said.getvalue().rpartition("error: ")[2].split())
        raise LoadError(f"{file}: {text}; options come from variables such as LOCUST_NAME") from None
    options.headless, options.locustfile = True, file
    options.num_users = options.spawn_rate = start.users or spec.concurrency
    options.tags = list(spec.tags) or options.tags
    options.exclude_tags = list(spec.exclude_tags) or options.exclude_tags
    options.user_classes = list(spec.user_classes) or options.user_classes
    if spec.base_url is not None:
        options.host = read_literally(str(spec.base_url)).rstrip("/")
    return options


def _build_environment(classes: dict[str, type[User]], options: Any, file: str) -> Environment:
    kinds: dict[str, Any] = dict(classes)
    try:
        return Environment(
            user_classes=list(classes.values()),
            events=locust.events,
            locustfile=Path(file).name,
            parsed_locustfiles=[file],
            host=options.host,
            tags=options.tags,
            exclude_tags=options.exclude_tags,
            parsed_options=options,
            available_user_classes=kinds,
            available_user_tasks={name: kind.tasks for name, kind in classes.items()},
        )
    except ValueError as error:
        raise LoadError(f"{file}: {error}") from None


def _get_ready(environment: Environment, file: str) -> None:
    events = environment.events
    _fire("init", file, events.init, environment=environment, runner=environment.runner, web_ui=None)
    environment._filter_tasks_by_tags()  # noqa: SLF001  # as Locust's runner does
    if environment.tags or environment.exclude_tags:
        environment.user_classes[:] = [kind for kind in environment.user_classes if kind.tasks]
        if not environment.user_classes:
            raise LoadError(f"{file} has no task with these tags")
    for kind in environment.user_classes:
        if environment.host:
            kind.host = environment.host
    _fire("test_start", file, events.test_start, environment=environment)


def _fire(name: str, file: str, event: EventHook, **arguments: object) -> None:
    log.unhandled_greenlet_exception = False
    try:
        event.fire(**arguments)
    except (Exception, SystemExit) as error:
        raise LoadError(
            f"{file}: a listener of {name} has failed: {type(error).__name__}: {error}"
        ) from error
    if log.unhandled_greenlet_exception and name == "init":
        raise LoadError(f"{file}: a listener of {name} has failed; the log of the worker says why")


def _check_classes(environment: Environment, file: str) -> None:
    """What each user would stumble over is said at once."""
    makers = (HttpUser.__init__, FastHttpUser.__init__)
    for kind in environment.user_classes:
        if kind.host is None and kind.__init__ in makers:
            raise LoadError(f"{file}: {kind.__name__} has no host; say --host URL, or give the class one")
