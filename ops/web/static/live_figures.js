// Numbers to read at a glance; what is not known yet is a dash.

import { h } from "./dom.js";
import { percent, whole } from "./format.js";

const known = (value, form) => (value === null || value === undefined ? "–" : form(value));
const digits = (number) => (value) =>
  value.toLocaleString("en", { minimumFractionDigits: number, maximumFractionDigits: number });

const FIGURES = [
  ["judged", ({ figures }) => known(figures.episodes_judged, whole)],
  ["success", ({ figures }) => known(figures.success, percent)],
  ["held-out", ({ training }) => known(training?.held_out.at(-1)?.[1], percent)],
  ["version", ({ figures }) => `${figures.version} of ${figures.num_iterations}`],
  ["versions/h", ({ figures }) => known(figures.versions_per_h, digits(1))],
  ["episodes/s", ({ figures }) => known(figures.episodes_ended_per_s, digits(2))],
  ["steps/s", ({ figures }) => known(figures.steps_per_s, digits(1))],
  ["judgements/s", ({ figures }) => known(figures.episodes_judged_per_s, digits(2))],
  ["parse rate", ({ figures }) => known(figures.parse_rate, percent)],
  ["staleness", ({ figures }) => staleness(figures)],
  ["mismatch", ({ figures }) => known(figures.mismatch, digits(4))],
  ["judge errors", ({ judging }) => known(judging?.error_share, percent)],
  ["judge cost", ({ judging }) => known(judging?.cost, digits(4))],
  ["dead letters", (sections) => known(sections.dead_letters, whole)],
  ["server", ({ figures }) => known(figures.server_answer_s, (value) => `${(1000 * value).toFixed(1)} ms`)],
];

function staleness({ staleness_mean, staleness_bound }) {
  const mean = known(staleness_mean, digits(2));
  return staleness_bound === null ? mean : `${mean} (≤ ${staleness_bound})`;
}

export function figureGrid() {
  const values = FIGURES.map(() => h("dd", {}, "–"));
  return {
    element: h(
      "dl",
      { class: "figures", "aria-label": "Figures" },
      FIGURES.map(([name], index) => h("div", {}, h("dt", {}, name), values[index])),
    ),
    update({ sections }) {
      if (!sections.figures) return;
      for (const [index, [, value]] of FIGURES.entries()) {
        const text = value(sections);
        if (values[index].textContent !== text) values[index].textContent = text;
      }
    },
  };
}
