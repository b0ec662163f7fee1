import click
import pytest

from oku_cli.follow.watch import Watch
from oku_cli.options.watch_options import pick_watch, sigterm_option, watch_options
from oku_cli.process.interrupt import SignalAction


def pick(*arguments: str, **default: SignalAction) -> Watch:
    """What a command gets that is given these arguments."""

    @click.command
    @watch_options
    @sigterm_option
    def command(**options: object) -> Watch:
        return pick_watch(options, **default)

    watch: Watch = command.main(list(arguments), standalone_mode=False)
    return watch


def test_sigterm_does_what_the_user_says_else_what_suits_the_command() -> None:
    """Each of the three can be said; most commands pause."""
    assert [pick("--on-sigterm", str(action)).on_sigterm for action in SignalAction] == [*SignalAction]
    assert pick().on_sigterm is SignalAction.PAUSE
    assert pick(on_sigterm=SignalAction.DETACH).on_sigterm is SignalAction.DETACH
    given = pick("--on-sigterm", "cancel", on_sigterm=SignalAction.DETACH)
    assert given.on_sigterm is SignalAction.CANCEL


@pytest.mark.parametrize("word", ["PAUSE", "kill", "", "pause,cancel"])
def test_another_word_is_refused(word: str) -> None:
    """The line names those that there are."""
    with pytest.raises(click.BadParameter, match="is not one of 'pause', 'cancel', 'detach'"):
        pick("--on-sigterm", word)
