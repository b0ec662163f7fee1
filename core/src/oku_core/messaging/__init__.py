"""What coordinator and workers say to each other: the messages, how they are signed, and how they travel."""
