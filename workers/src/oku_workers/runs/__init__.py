"""What a worker has for each run: its engine, its files and secrets, and its pace."""
