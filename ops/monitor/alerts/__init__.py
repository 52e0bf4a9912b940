"""What an operator should know and do: conditions judged from a monitor's state, and the alerts that they become. Pure."""
