"""Real brokers and coordinators with simulated workers, which send no request."""
