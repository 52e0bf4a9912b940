"""Workers told to leave, over the bus and by a signal; those who tell them."""
