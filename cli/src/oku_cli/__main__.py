"""`python -m oku_cli` is `oku`."""

from oku_cli.main import main

main()
