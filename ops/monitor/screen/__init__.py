"""The monitor in a terminal: pure drawings of its state in a given size, and the loop that shows them."""
