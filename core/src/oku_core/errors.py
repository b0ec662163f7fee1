"""The one error that a user can mend."""


class UserError(Exception):
    """What the user wrote or has set up is wrong.

    The message is one line that names the place, the value and what is allowed; every process of Oku prints
    it without a traceback and ends with exit code 2.
    """
