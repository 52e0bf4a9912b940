"""The subcommands of `millrace`, a module for each heading of its help. What a command needs loads when it is called."""
