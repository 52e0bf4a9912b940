"""The eight actions of WebGym."""

from agents.tool import Tool
from agents.tool_files import tool_of_files
from agents.vocabularies import vocabulary


@vocabulary("standard")
def standard(*, marked: bool) -> Tool:
    return tool_of_files(marked=marked, extended=False)
