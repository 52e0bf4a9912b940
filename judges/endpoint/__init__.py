"""OpenAI-compatible endpoints: limits, retries, accounting."""
