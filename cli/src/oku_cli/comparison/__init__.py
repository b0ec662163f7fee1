"""Two runs side by side: what differs in their specs and figures, and whether that may be judged."""
