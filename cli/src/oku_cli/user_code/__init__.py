"""What a file of user code is, by its syntax tree alone: nothing of it is ever run here."""
