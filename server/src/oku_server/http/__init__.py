"""HTTP as the delay server speaks it: requests in, responses out."""
