"""The headers by which requests give instructions to Oku's own delay servers.

`Oku-Run` names the run that a request counts for, by a name that only its coordinator and workers know.
`Oku-Delay` and `Oku-Seed` override the server's flags `--delay` and `--seed` for one request.
"""

RUN_HEADER = "Oku-Run"
DELAY_HEADER = "Oku-Delay"
SEED_HEADER = "Oku-Seed"
