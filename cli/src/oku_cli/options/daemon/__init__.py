"""Options of the processes that pods run: their logs, files, keys and ledgers."""
