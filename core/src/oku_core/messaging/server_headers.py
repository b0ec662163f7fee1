"""The headers in which a request tells Oku's own delay servers what they cannot know.

`Oku-Run` names the run that the request is counted for. `Oku-Delay` and `Oku-Seed` are to this request what
the flags `--delay` and `--seed` are to the server; without them, those hold.
"""

RUN_HEADER = "Oku-Run"
DELAY_HEADER = "Oku-Delay"
SEED_HEADER = "Oku-Seed"
