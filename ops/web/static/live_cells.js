// Every live episode as a cell. A cell keeps its place as long as it is shown, and only what changed is touched.

import { h } from "./dom.js";
import { age } from "./format.js";
import { isSlow, kind, mark, phaseText } from "./live_marks.js";

/** Episodes with a cell of their own; queued ones beyond are counted only. */
const MOST = 6000;
const SPARSE = 256;

/** `matches(cell, now)`: whether it is shown; `chosen(episode)`: it was clicked or entered. */
export function cellGrid({ matches, chosen }) {
  const shown = new Map();
  const slots = [];
  let free = [];
  let active = null;
  let now = 0;
  const told = h("p", { class: "cell-told" }, "");
  const grid = h("div", {
    class: "cells",
    role: "listbox",
    tabindex: "0",
    "aria-label": "Live episodes",
    onkeydown: walk,
    onclick: (event) => {
      const slot = event.target.closest(".cell");
      if (!slot?.cell) return;
      activate(slot);
      chosen(slot.cell.episode);
    },
    onmouseover: (event) => tell(event.target.closest(".cell") ?? active),
    onmouseleave: () => tell(active),
    onfocus: () => active ?? activate(visible()[0]),
  });

  function take(cell) {
    let slot = shown.get(cell.episode);
    if (slot === undefined) {
      if (shown.size >= MOST && cell.phase === "queued") return;
      slot = free.pop() ?? appended();
      shown.set(cell.episode, slot);
      slot.dataset.episode = cell.episode;
      slot.setAttribute("role", "option");
    }
    slot.cell = cell;
    draw(slot);
  }

  function appended() {
    const slot = h("div", { class: "cell free", id: `cell-${slots.length}` });
    slot.append("");
    slot.at = slots.length;
    slots.push(slot);
    grid.append(slot);
    return slot;
  }

  function draw(slot) {
    const { cell } = slot;
    const slow = isSlow(cell, now) ? " slow" : "";
    const out = matches(cell, now) ? "" : " out";
    const look = `cell ${kind(cell)}${slow}${out}${slot === active ? " active" : ""}`;
    if (slot.className !== look) slot.className = look;
    const text = mark(cell);
    if (slot.firstChild.data !== text) slot.firstChild.data = text;
    if (slot === active) {
      slot.setAttribute("aria-label", described(cell));
      if (!grid.matches(":hover")) tell(slot);
    }
  }

  function drop(episode) {
    const slot = shown.get(episode);
    if (slot === undefined) return;
    shown.delete(episode);
    slot.cell = null;
    slot.className = "cell free";
    slot.firstChild.data = "";
    delete slot.dataset.episode;
    slot.removeAttribute("role");
    if (slot === active) activate(null);
    free.push(slot);
  }

  /** The first free place is taken next; places that nobody needs any more go. */
  function tidy() {
    if (free.length > SPARSE && free.length > shown.size) {
      for (const [index, cell] of [...shown.values()].map((slot) => slot.cell).entries()) move(cell, slots[index]);
    }
    while (slots.length && slots.at(-1).cell == null) slots.pop().remove();
    free = slots.filter((slot) => slot.cell == null).sort((one, other) => other.at - one.at);
  }

  function move(cell, slot) {
    const before = shown.get(cell.episode);
    if (before === slot) return;
    const held = slot.cell;
    [slot.cell, before.cell] = [cell, held ?? null];
    shown.set(cell.episode, slot);
    if (held) shown.set(held.episode, before);
    for (const each of [slot, before]) {
      if (!each.cell) {
        each.className = "cell free";
        each.firstChild.data = "";
        delete each.dataset.episode;
        each.removeAttribute("role");
        continue;
      }
      each.dataset.episode = each.cell.episode;
      each.setAttribute("role", "option");
      draw(each);
    }
  }

  function visible() {
    return slots.filter((slot) => slot.cell && !slot.classList.contains("out"));
  }

  function activate(slot) {
    if (active) {
      active.classList.remove("active");
      active.removeAttribute("aria-label");
      active.removeAttribute("aria-selected");
    }
    active = slot ?? null;
    if (!active) {
      grid.removeAttribute("aria-activedescendant");
      tell(null);
      return;
    }
    grid.setAttribute("aria-activedescendant", active.id);
    active.setAttribute("aria-selected", "true");
    draw(active);
    active.scrollIntoView({ block: "nearest" });
    tell(active);
  }

  function tell(slot) {
    told.textContent = slot?.cell ? described(slot.cell) : "Point at a cell, or walk with the arrow keys; Enter opens it.";
  }

  function described(cell) {
    return [
      cell.task || cell.episode,
      phaseText(cell),
      `for ${age(now - cell.since)}`,
      cell.site,
      cell.worker,
    ]
      .filter(Boolean)
      .join(" · ");
  }

  function walk(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") {
      if (active?.cell) chosen(active.cell.episode);
    } else {
      const list = visible();
      const columns = Math.max(1, list.filter((slot) => slot.offsetTop === list[0].offsetTop).length);
      const at = list.indexOf(active);
      const to = {
        ArrowLeft: at - 1,
        ArrowRight: at + 1,
        ArrowUp: at - columns,
        ArrowDown: at + columns,
        Home: 0,
        End: list.length - 1,
      }[event.key];
      if (to === undefined) return;
      activate(list[Math.max(0, Math.min(list.length - 1, to))]);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  function redraw() {
    for (const slot of shown.values()) draw(slot);
  }

  tell(null);
  return {
    element: grid,
    told,
    redraw,
    focus: () => grid.focus(),
    num: () => ({ shown: visible().length, cells: shown.size }),
    update({ cells, gone }, at) {
      now = at;
      for (const episode of gone) drop(episode);
      for (const cell of Object.values(cells)) take(cell);
      tidy();
    },
    tick(at) {
      now = at;
      for (const slot of shown.values())
        if (isSlow(slot.cell, at) !== slot.classList.contains("slow")) draw(slot);
    },
  };
}
