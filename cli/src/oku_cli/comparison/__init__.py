"""Two runs side by side: differences of their specs and figures, and whether they may be judged."""
