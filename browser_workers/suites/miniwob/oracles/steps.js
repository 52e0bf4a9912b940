// What the scripted oracles are made of. An oracle looks at its page as it is now and names the next step; it keeps nothing
// from one step to the next.
"use strict";
window.millraceOracles = {};
window.millraceOracle = () => {
  const page = location.pathname.replace(/^.*\/|\.html$/g, "");
  const solve = window.millraceOracles[page];
  const asked = core.ept0 === null || !solve ? "" : core.getUtterance();
  // What moves is looked at again when it stands still.
  if (asked && window.jQuery && jQuery(":animated").length) return { action: { kind: "wait", seconds: 0.2 } };
  try {
    return asked ? solve(typeof asked === "string" ? asked : asked.utterance) : undefined;
  } catch {
    // The page is in a state that the oracle does not know: there is no next step.
    return undefined;
  }
};

window.millraceSteps = (() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const text = (element) => element.textContent.replace(/\s+/g, " ").trim();
  const shown = (element) => element.getClientRects().length > 0 && element.getBoundingClientRect().height > 0;
  const named = (selector, name) => all(selector).find((element) => shown(element) && text(element) === name);
  const quoted = (asked) => [...asked.matchAll(/"([^"]*)"/g)].map((found) => found[1]);
  const ordinal = (asked) => Number(asked.match(/(\d+)(st|nd|rd|th)/)[1]);
  const grid = (x, y) => [(x / innerWidth) * 1000, (y / innerHeight) * 1000];

  /** x, y, width, height of what is seen of an element first; an element over several lines is taken by its first. */
  const boxOf = (element) => {
    const { left, top, width, height } = element.getClientRects()[0];
    return [left, top, width, height].map(Math.round);
  };
  const middle = ([x, y, width, height]) => [x + width / 2, y + height / 2];
  const hits = (element, [x, y]) => element.contains(document.elementFromPoint(x, y));

  /** A point where input reaches the element: its middle, or whatever is not covered. */
  const openPoint = (element) => {
    const box = boxOf(element);
    const shares = [0.5, 0.25, 0.75, 0.1, 0.9];
    const points = shares.flatMap((down) => shares.map((right) => [box[0] + box[2] * right, box[1] + box[3] * down]));
    return points.find((point) => hits(element, point));
  };
  const scrollerOf = (element) => {
    const scrolls = (each) => each.scrollHeight > each.clientHeight + 1 && getComputedStyle(each).overflowY !== "visible";
    let each = element.parentElement;
    while (each && !scrolls(each)) each = each.parentElement;
    return each;
  };
  const scrollAt = (x, y, direction) => ({ action: { kind: "scroll", direction, point: grid(x, y) } });
  const scrollTo = (element) => {
    const scroller = scrollerOf(element);
    const box = scroller && scroller.parentElement ? boxOf(scroller) : [0, 0, innerWidth, innerHeight];
    const [x, y] = middle(box);
    return scrollAt(x, y, middle(boxOf(element))[1] > y ? "down" : "up");
  };

  const aim = (element, action) => {
    const point = openPoint(element);
    if (!point) return scrollTo(element);
    return { target: boxOf(element), action: { ...action, point: grid(...point) } };
  };
  const click = (element) => aim(element, { kind: "click" });
  // Enter would be a line more in a text of several lines.
  const type = (element, value) => aim(element, { kind: "type", text: value, enter: element.tagName !== "TEXTAREA" });
  const select = (element, option) => aim(element, { kind: "select", text: option });
  const wait = (seconds) => ({ action: { kind: "wait", seconds } });
  const press = (...keys) => ({ action: { kind: "press", keys } });
  const scroll = (element, direction) => scrollAt(...middle(boxOf(element)), direction);
  const drag = (element, x, y) => aim(element, { kind: "drag", end_point: grid(x, y) });
  const dragFrom = (fromX, fromY, x, y) => ({ action: { kind: "drag", point: grid(fromX, fromY), end_point: grid(x, y) } });

  /** Fields get their values one after the other; then the button is pressed. */
  const fill = (fields, button) => {
    const next = fields.find(([field, value]) => field.value !== value);
    return next ? type(...next) : click(button);
  };
  /** Boxes are ticked and unticked until they are as `wanted` says; then the button is pressed. */
  const tick = (boxes, wanted, button) => {
    const next = boxes.find((box) => box.checked !== wanted(box));
    return next ? click(next) : click(button);
  };
  return {
    one, all, text, shown, named, quoted, ordinal, boxOf, middle, openPoint,
    click, type, select, wait, press, scroll, drag, dragFrom, fill, tick,
  };
})();
