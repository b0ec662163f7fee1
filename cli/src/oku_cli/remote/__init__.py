"""A remote coordinator: how it is found and called, and how its runs are followed."""
