"""The field's published evaluators: what they look at and how they decide, asked in this project's words."""
