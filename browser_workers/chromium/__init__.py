"""The browser behind `browser_workers.browser`: Chromium, driven by Playwright."""
