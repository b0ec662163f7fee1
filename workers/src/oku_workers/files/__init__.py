"""The files of runs, as a worker has them: fetched from the coordinator, checked, kept while in use."""
