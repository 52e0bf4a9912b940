"""Fault drills: processes killed, stopped and cut off at random while a run goes on, and the proof that it kept its word."""
