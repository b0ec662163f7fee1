"""What is counted, and the states of what is counted: intervals, outcomes, runs."""
