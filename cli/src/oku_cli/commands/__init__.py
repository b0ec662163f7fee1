"""One module for each subcommand of `oku`; each has its click command as `command`."""
