"""The spec of a run as a user gives it: options, files, standard input, and what a shell offers for them."""
