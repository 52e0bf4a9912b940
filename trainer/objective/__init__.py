"""The policy's objective: what losses share, what is added to them, and the share of every token in an optimizer step."""
