/*
  What stands in the document as text.

  One of the parts of a script for an isolated world.
*/

/** The first lines that a visitor sees, empty ones left out. */
const text = (numLines, numCharacters) => cut((document.body?.innerText ?? "").split("\n").map((line) => line.trim())
  .filter((line) => line).slice(0, numLines).join("\n"), numCharacters);
