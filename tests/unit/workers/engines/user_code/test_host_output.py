from typing import Any, get_args

import msgspec
import pytest

from oku_core.process.redaction import MASK, hide
from oku_core.user_code.messages import FromHost, Report, Returned
from oku_workers.engines.user_code.host_output import redact_message

SECRET = "message-hunter2"


def fill(kind: Any) -> Any:
    """A value of a type, with the secret in every text of it."""
    if kind is str:
        return f"x {SECRET} y"
    if kind == list[str]:
        return [SECRET, "plain"]
    if kind == dict[int, str]:
        return {3: SECRET}
    return msgspec.convert({bool: True, int: 7, list[int]: [7]}[kind], kind)


@pytest.mark.parametrize("kind", get_args(FromHost), ids=lambda kind: kind.__name__)
def test_no_text_of_a_host_shows_a_secret(kind: Any) -> None:
    """Whatever message it is in; only what a hook has returned stays, which iterations need as it is."""
    hide(SECRET)
    fields = {field.name: fill(field.type) for field in msgspec.structs.fields(kind)}
    message = redact_message(kind(**fields))
    assert isinstance(message, msgspec.Struct)
    redacted = msgspec.structs.asdict(message)
    has_texts = SECRET in repr({name: value for name, value in fields.items() if name != "value"})
    assert redacted.pop("value", None) == (fields["value"] if kind is Returned else None)
    assert SECRET not in repr(redacted)
    assert (MASK in repr(redacted)) == has_texts


def test_numbers_of_a_host_stay_as_they_are() -> None:
    """A report without texts, as nearly all are, is not even copied."""
    report = Report(wanted=3, requests=[0, 0, 0, 200, 5, 2, -1])
    assert redact_message(report) is report
    # A short secret is masked where it stands alone.
    hide("q7")
    assert redact_message(Report(texts=["PIN q7", "q77"])) == Report(texts=[f"PIN {MASK}", "q77"])
