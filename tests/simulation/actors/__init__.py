"""Who acts: workers, coordinators, those who use them, and those who attack."""
