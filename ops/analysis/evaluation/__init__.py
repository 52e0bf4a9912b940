"""Evaluation of one model on a file of tasks: played, counted, and compared with other models on the same tasks."""
