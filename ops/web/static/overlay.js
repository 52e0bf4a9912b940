// A screenshot with what the policy did drawn in: where it pointed, dragged, typed or scrolled.

import { h, svg } from "./dom.js";

const MOST_LABEL = 44;

/** A figure that keeps its place while the screenshot loads. `marks`: show what the numbers of a set-of-marks screenshot stand for. */
export function shot(step, { marks = false, drawn = true, lazy = false, name } = {}) {
  const screenshot = step.page?.screenshot;
  if (!screenshot)
    return h(
      "div",
      { class: "shot absent", vars: { "--ratio": "1.4" } },
      h("span", {}, name === "" ? "–" : "This screenshot is no longer kept."),
    );
  const image = h("img", {
    src: screenshot.url,
    width: screenshot.width,
    height: screenshot.height,
    loading: lazy ? "lazy" : "eager",
    decoding: "async",
    alt: name ?? `What the policy saw at step ${step.step + 1}`,
  });
  const figure = h("div", { class: "shot", vars: { "--ratio": String(screenshot.width / screenshot.height) } }, image);
  image.addEventListener("error", () =>
    figure.replaceChildren(h("span", { class: "absent" }, "This screenshot cannot be shown.")),
  );
  if (marks)
    figure.append(
      layer(
        screenshot,
        "marks",
        step.page.elements.map((element) => mark(element, unitOf(screenshot))),
      ),
    );
  if (drawn && step.answer) figure.append(layer(screenshot, "action", drawing(step, screenshot)));
  return figure;
}

/** What drawings are measured in, so that they look alike on small and large screenshots. */
const unitOf = (screenshot) => Math.max(screenshot.width, screenshot.height) / 80;

function layer(screenshot, kind, children) {
  const attributes = {
    viewBox: `0 0 ${screenshot.width} ${screenshot.height}`,
    vars: { "--unit": `${unitOf(screenshot)}px` },
    "aria-hidden": "true",
  };
  return svg("svg", { class: `overlay ${kind}`, ...attributes }, children);
}

function mark({ id, box: [x, y, width, height] }, unit) {
  return [
    svg("rect", { class: "mark", x, y, width, height }),
    svg("text", { class: "mark-number", x: x + unit * 0.4, y: y + unit * 2, "font-size": unit * 2 }, String(id)),
  ];
}

/** The parts of an action's drawing; none for an action that has no place. */
function drawing(step, screenshot) {
  const action = step.answer.action;
  const unit = unitOf(screenshot);
  const place = (point, element) => placeOf(point, element, step.page, screenshot);
  const start = place(action.point, action.element);
  const end = place(action.end_point, action.end_element);
  const parts = [];
  if (start?.box) parts.push(svg("rect", { class: "target-box", ...start.box }));
  if (start && end) parts.push(path(start, end, unit));
  if (action.kind === "scroll")
    parts.push(arrow(start ?? { x: screenshot.width / 2, y: screenshot.height / 2 }, action.direction ?? "down", unit));
  else if (start) parts.push(target(start, unit));
  const said = label(action);
  if (said) parts.push(bubble(said, start ?? { x: screenshot.width / 2, y: unit * 3 }, screenshot, unit));
  return parts;
}

/** In pixels of the screenshot: a point of the 0-1000 grid, or the middle of a numbered element with its box. */
function placeOf(point, element, page, screenshot) {
  if (point) return { x: (point[0] / 1000) * screenshot.width, y: (point[1] / 1000) * screenshot.height };
  const found = page.elements.find((each) => each.id === element);
  if (!found) return null;
  const [x, y, width, height] = found.box;
  return { x: x + width / 2, y: y + height / 2, box: { x, y, width, height } };
}

function label({ kind, text, keys }) {
  switch (kind) {
    case "type":
    case "select":
      return `“${text ?? ""}”`;
    case "press":
      return (keys ?? []).join(" ");
    case "navigate":
    case "new_tab":
    case "answer":
      return `${kind.replace("_", " ")} ${text ?? ""}`;
    case "double_click":
    case "right_click":
    case "hover":
    case "wait":
    case "go_back":
    case "switch_tab":
    case "close_tab":
    case "read_page":
      return kind.replace("_", " ");
    default:
      return "";
  }
}

/** Everything twice: a broad light line below the coloured one stands out on any page. */
function twice(make) {
  return svg("g", {}, make("halo"), make("line"));
}

function target({ x, y }, unit) {
  const inner = unit * 0.9,
    outer = unit * 2.4;
  const cross = `M${x - outer} ${y}H${x - inner}M${x + inner} ${y}H${x + outer}M${x} ${y - outer}V${y - inner}M${x} ${y + inner}V${y + outer}`;
  return twice((kind) =>
    svg("g", { class: kind }, svg("circle", { cx: x, cy: y, r: unit * 1.5 }), svg("path", { d: cross })),
  );
}

function path(start, end, unit) {
  const angle = Math.atan2(end.y - start.y, end.x - start.x);
  const at = (x, y) => `${Number(x.toFixed(2))} ${Number(y.toFixed(2))}`;
  const wing = (turn) =>
    `M${at(end.x, end.y)}L${at(end.x - unit * 2 * Math.cos(angle + turn), end.y - unit * 2 * Math.sin(angle + turn))}`;
  return twice((kind) =>
    svg("path", { class: kind, d: `M${at(start.x, start.y)}L${at(end.x, end.y)}${wing(0.5)}${wing(-0.5)}` }),
  );
}

const DIRECTIONS = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };

function arrow({ x, y }, direction, unit) {
  const [dx, dy] = DIRECTIONS[direction] ?? DIRECTIONS.down;
  const reach = unit * 8;
  return path({ x: x - dx * reach, y: y - dy * reach }, { x: x + dx * reach, y: y + dy * reach }, unit * 1.6);
}

function bubble(text, { x, y }, screenshot, unit) {
  const shown = text.length > MOST_LABEL ? `${text.slice(0, MOST_LABEL - 1)}…` : text;
  const size = unit * 1.7;
  const width = Math.min(screenshot.width, shown.length * size * 0.64 + size * 1.2),
    height = size * 1.8;
  const left = Math.max(0, Math.min(screenshot.width - width, x - width / 2));
  const below = y + unit * 3;
  const top = below + height < screenshot.height ? below : Math.max(0, y - unit * 3 - height);
  return svg(
    "g",
    { class: "bubble" },
    svg("rect", { x: left, y: top, width, height, rx: height / 4 }),
    svg(
      "text",
      {
        x: left + width / 2,
        y: top + height * 0.68,
        "font-size": size,
        "text-anchor": "middle",
        textLength: shown.length > 30 ? width - size : null,
        lengthAdjust: "spacingAndGlyphs",
      },
      shown,
    ),
  );
}
