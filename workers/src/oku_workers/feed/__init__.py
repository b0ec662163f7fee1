"""What engines take requests from: the feed of a closed run, of one with a highest rate, of an open one."""
