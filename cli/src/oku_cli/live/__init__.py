"""Shows a run in progress on a terminal, in a file or in a pipe."""
