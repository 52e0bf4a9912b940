"""`millrace run`: every role of a run on this machine, under one supervisor and on one screen."""
