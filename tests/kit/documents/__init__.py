"""Kit for tests that do what the documents show."""
