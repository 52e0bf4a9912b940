"""The trainer and the curriculum that feeds it."""
