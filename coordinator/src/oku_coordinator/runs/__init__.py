"""Operations on runs, and the rules for their start, waiting, end and deletion."""
