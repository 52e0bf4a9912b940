"""Starts, supervises, restarts and drains the processes of the roles on this machine."""
