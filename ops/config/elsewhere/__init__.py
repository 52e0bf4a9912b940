"""Other programs' configurations: one table each of their keys with what becomes of them here, and files read by it."""
