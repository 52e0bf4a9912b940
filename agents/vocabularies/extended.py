"""The standard actions, and double and right click, drag, keys, select, tabs and reading text."""

from agents.tool import Tool
from agents.tool_files import tool_of_files
from agents.vocabularies import vocabulary


@vocabulary("extended")
def extended(*, marked: bool) -> Tool:
    return tool_of_files(marked=marked, extended=True)
