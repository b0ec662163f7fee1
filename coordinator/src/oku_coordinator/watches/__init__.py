"""Watch runs and the installation: what must happen although nobody asks for it."""
