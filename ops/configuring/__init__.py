"""The configuration for people: names of other programs, where every value comes from, and what every key means."""
