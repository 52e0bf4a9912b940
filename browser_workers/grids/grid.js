// Plays a level on a square board: draws it, takes moves by button or arrow key, and keeps what they earned. Directions count
// 0 up, 1 right, 2 down, 3 left; cells from 0, row by row. LEVEL is what the suite drew (grids/suite.py).
//
// window.millrace = {utterance, done, reward, success}; window.millraceStand() is for scripted oracles only.
"use strict";
const DIRECTIONS = ["Up", "Right", "Down", "Left"];
const ON_THE_PAGE = ["Left", "Up", "Down", "Right"];

/** The cell in that direction; beyond the edge, the cell itself. */
function beside(cell, direction) {
  const { size } = LEVEL;
  switch (direction) {
    case 0: return cell >= size ? cell - size : cell;
    case 1: return (cell + 1) % size ? cell + 1 : cell;
    case 2: return cell < size * (size - 1) ? cell + size : cell;
    default: return cell % size ? cell - 1 : cell;
  }
}

/** SVG of what stands in a cell, drawn in a square of 10 by 10. */
const inCell = (cell, shapes) =>
  `<g transform="translate(${(cell % LEVEL.size) * 10} ${Math.floor(cell / LEVEL.size) * 10})">${shapes}</g>`;

const FIGURE =
  '<ellipse cx="5" cy="8.8" rx="2.4" ry=".6" fill="#0003"/><path d="M2.7 8.6q0-3.8 2.3-3.8t2.3 3.8z" fill="#2f6fb0"/>' +
  '<circle cx="5" cy="3.2" r="1.9" fill="#f6d3b3"/><path d="M3.1 3a1.9 1.9 0 0 1 3.8 0z" fill="#5b3a29"/>';

/**
 * Starts the game.
 *   state()          what an oracle has to know, by name
 *   shapes(cell)     SVG of the cell without the figure
 *   sign(cell)       one character for the cell, figure included
 *   move(direction)  makes the move: {idle, earned, done, success}
 */
function play({ state, shapes, sign, move }) {
  const { size, controls, text, stepReward, idleReward, utterance } = LEVEL;
  const cells = [...Array(size * size).keys()];
  const board = document.createElement("div");
  const buttons = {};

  const draw = () => {
    const figure = inCell(state().player, FIGURE);
    board.innerHTML = `<svg viewBox="0 0 ${size * 10} ${size * 10}" aria-hidden="true">` +
      cells.map((cell) => inCell(cell, shapes(cell))).join("") + `${figure}</svg>`;
    if (text) board.ariaLabel = cells.map((cell) => (cell && cell % size === 0 ? " " : "") + sign(cell)).join("");
  };

  const go = (direction) => {
    if (window.millrace.done) return;
    const { idle, earned, done, success } = move(direction);
    const reward = window.millrace.reward + earned + stepReward + (idle ? idleReward : 0);
    window.millrace = { utterance, done, reward, success };
    draw();
  };

  board.id = "board";
  board.role = "img";
  // What can be focused is an element that a model is told of, with its name.
  if (text) board.tabIndex = 0;
  document.body.append(board);
  if (controls === "buttons") {
    board.className = "with-buttons";
    const bar = document.createElement("nav");
    for (const name of ON_THE_PAGE) {
      const button = buttons[name] = document.createElement("button");
      button.textContent = name;
      button.onclick = () => go(DIRECTIONS.indexOf(name));
      bar.append(button);
    }
    document.body.append(bar);
  }
  addEventListener("keydown", (event) => {
    const direction = DIRECTIONS.findIndex((name) => event.key === `Arrow${name}`);
    if (direction < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(direction);
  });

  window.millrace = { utterance, done: false, reward: 0, success: false };
  window.millraceStand = () => ({
    state: state(),
    buttons: DIRECTIONS.filter((name) => buttons[name]).map((name) => {
      const box = buttons[name].getBoundingClientRect();
      return [(box.x + box.width / 2) / innerWidth, (box.y + box.height / 2) / innerHeight];
    }),
  });
  draw();
}
