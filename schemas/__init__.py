"""Defines what every role agrees on: messages, identities, errors and configuration. Imports msgspec and the standard
library only."""
