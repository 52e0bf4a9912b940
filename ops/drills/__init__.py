"""Kills, stops and cuts off processes at random while a run goes on, and proves that the run kept its word."""
