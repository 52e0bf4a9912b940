// The curve of success over judged episodes, with held-out rounds and versions; and how stale the newest batch was.

import { h, show, svg } from "./dom.js";
import { counted, percent, whole } from "./format.js";

const HEIGHT = 220;
const MARGIN = { top: 10, right: 14, bottom: 24, left: 42 };
/** Fewer pixels than this between two versions, and they are left out. */
const CLOSE = 14;

export function rewardCurve() {
  const said = h("p", { class: "soft" }, "");
  const holder = h("div", { class: "curve" });
  let training = null;
  let drawn = "";

  function draw() {
    const width = holder.clientWidth;
    if (!training || !width) return;
    const key = JSON.stringify([width, training.train, training.held_out, training.versions]);
    if (key === drawn) return;
    drawn = key;
    const { train, held_out } = training;
    const newest = train.at(-1);
    const round = held_out.at(-1);
    said.textContent = newest
      ? [
          `Success of the latest training episodes ${percent(newest[1])}, after ${whole(newest[0])}`,
          round ? `newest held-out round ${percent(round[1])}` : null,
        ]
          .filter(Boolean)
          .join("; ")
      : "The curve begins with the first judged episodes.";
    show(holder, newest || round ? screenshot(width, training, said.textContent) : []);
  }

  new ResizeObserver(draw).observe(holder);
  return {
    element: [said, holder, key()],
    update({ sections }) {
      training = sections.training ?? training;
      draw();
    },
  };
}

const key = () =>
  h(
    "p",
    { class: "curve-key soft" },
    h("span", { class: "line-of train" }),
    " training window ",
    h("span", { class: "dot-of held-out" }),
    " held-out ",
    h("span", { class: "line-of version" }),
    " version",
  );

function screenshot(width, { train, held_out, versions }, name) {
  const last = Math.max(1, train.at(-1)?.[0] ?? 0, held_out.at(-1)?.[0] ?? 0);
  const x = (episodes) => MARGIN.left + (episodes / last) * (width - MARGIN.left - MARGIN.right);
  const y = (success) => HEIGHT - MARGIN.bottom - success * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const place = ([episodes, success]) => `${x(episodes).toFixed(1)},${y(success).toFixed(1)}`;
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": name },
    [0, 0.25, 0.5, 0.75, 1].map((share) => [
      svg("line", { class: "rule", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(share), y2: y(share) }),
      svg("text", { class: "tick", x: MARGIN.left - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`),
    ]),
    marked(versions, x).map(([episodes, version]) => [
      svg("line", { class: "version", x1: x(episodes), x2: x(episodes), y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }),
      svg("text", { class: "tick", x: x(episodes) + 3, y: MARGIN.top + 9 }, `v${version}`),
    ]),
    svg("text", { class: "tick", x: MARGIN.left, y: HEIGHT - 7 }, "0"),
    svg("text", { class: "tick", x: width - MARGIN.right, y: HEIGHT - 7, "text-anchor": "end" }, counted(last, "episode")),
    train.length > 1 ? svg("polyline", { class: "train", points: train.map(place).join(" ") }) : null,
    train.length === 1 ? dot("train", train[0], x, y) : null,
    held_out.map((round) => dot("held-out", round, x, y)),
  );
}

function dot(tone, [episodes, success], x, y) {
  const says = `${percent(success)} after ${whole(episodes)} episodes`;
  return svg("circle", { class: tone, cx: x(episodes), cy: y(success), r: 4 }, svg("title", {}, says));
}

/** Those versions that have room, the newest always. */
function marked(versions, x) {
  const found = [];
  for (const version of [...versions].reverse())
    if (version[1] > 0 && (!found.length || x(found.at(-1)[0]) - x(version[0]) >= CLOSE * 2)) found.push(version);
  return found;
}

/** Shares of a whole as bars; `entries` of the run's sections gives names and numbers. */
export function shareBars(label, entries, empty) {
  const holder = h("div", {});
  let drawn = null;
  return {
    element: holder,
    update({ sections }) {
      const found = entries(sections);
      const key = JSON.stringify(found);
      if (key === drawn) return;
      drawn = key;
      const all = found.reduce((sum, [, value]) => sum + value, 0);
      show(holder, all ? h("table", { class: "bars", "aria-label": label }, found.map(bar(all))) : h("p", { class: "soft" }, empty));
    },
  };
}

const bar =
  (all) =>
  ([name, value]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h("td", {}, value ? h("span", { class: "bar-of", vars: { "--share": String(value / all) } }) : null),
      h("td", { class: "number" }, whole(value)),
      h("td", { class: "number" }, percent(value / all)),
    );
