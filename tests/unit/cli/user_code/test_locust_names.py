from pathlib import Path

import pytest

from oku_cli.user_code.locust_names import list_tags, list_user_classes
from oku_core.errors import UserError

LOCUSTFILE = """\
import locust
from locust import FastHttpUser, HttpUser, SequentialTaskSet, tag, task
from own import Base

class Plain: pass
class Hidden(HttpUser):
    abstract = True
class Steps(SequentialTaskSet):
    @tag("slow")
    @task
    def step(self): pass
class More(locust.TaskSet): pass
class EvenMore(More): pass
class Chain(locust.MarkovTaskSet): pass
class Shape(locust.LoadTestShape): pass
class Buyer(Base):
    tasks = [Steps]
    @locust.tag("cart", "slow")
    @task
    def buy(self): pass
class Reader(locust.FastHttpUser):
    class Inner(locust.HttpUser): pass
"""


def write(folder: Path, text: str = LOCUSTFILE) -> Path:
    """Write a locustfile, with a module beside it."""
    (folder / "own.py").write_text(
        "from locust import HttpUser, tag\nclass Base(HttpUser):\n    @tag('base')\n    def go(self): pass\n"
    )
    (folder / "locustfile.py").write_text(text)
    return folder / "locustfile.py"


def test_names_in_a_locustfile_are_found(tmp_path: Path) -> None:
    """Sets of tasks, shapes and abstract classes are none."""
    assert list_user_classes(write(tmp_path)) == ["Buyer", "Reader"]
    # Tags are found also in modules beside the file. Each once.
    assert list_tags(write(tmp_path)) == ["base", "cart", "slow"]
    # A file that is not python has no names. Whoever asks is told so.
    path = write(tmp_path, "class (")
    for find in (list_user_classes, list_tags):
        with pytest.raises(UserError, match=r"^locustfile\.py:1: is not Python"):
            find(path)
