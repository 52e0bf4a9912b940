// Numbers to read at a glance; what is not known yet is a dash.

import { h } from "./dom.js";
import { duration, percent, small, whole } from "./format.js";

const known = (value, form) => (value === null || value === undefined ? "–" : form(value));
const digits = (number) => (value) =>
  value.toLocaleString("en", { minimumFractionDigits: number, maximumFractionDigits: number });

const FIGURES = [
  ["judged", ({ metrics }) => known(metrics.episodes_judged, whole)],
  ["success", ({ metrics }) => known(metrics.success, percent)],
  ["held-out", ({ training }) => known(training?.held_out.at(-1)?.[1], percent)],
  ["version", ({ metrics }) => `${metrics.version} of ${metrics.num_iterations}`],
  ["versions/h", ({ metrics }) => known(metrics.versions_per_h, digits(1))],
  ["ends in", ({ metrics }, now) => known(metrics.ends_at, (at) => `≈ ${duration(Math.max(0, at - now))}`)],
  ["episodes/s", ({ metrics }) => known(metrics.episodes_ended_per_s, digits(2))],
  ["steps/s", ({ metrics }) => known(metrics.steps_per_s, digits(1))],
  ["judgements/s", ({ metrics }) => known(metrics.episodes_judged_per_s, digits(2))],
  ["parse rate", ({ metrics }) => known(metrics.parse_rate, percent)],
  ["staleness", ({ metrics }) => staleness(metrics)],
  ["mismatch", ({ metrics }) => known(metrics.mismatch, small)],
  ["judge errors", ({ judging }) => known(judging?.error_share, percent)],
  ["judge cost", ({ judging }) => known(judging?.cost, small)],
  ["dead letters", (sections) => known(sections.dead_letters, whole)],
  ["server", ({ metrics }) => known(metrics.server_answer_s, (value) => `${(1000 * value).toFixed(1)} ms`)],
];

function staleness({ staleness_mean, staleness_bound }) {
  const mean = known(staleness_mean, digits(2));
  return staleness_bound === null ? mean : `${mean} (≤ ${staleness_bound})`;
}

export function metricGrid() {
  const values = FIGURES.map(() => h("dd", {}, "–"));
  return {
    element: h(
      "dl",
      { class: "metrics", "aria-label": "Metrics" },
      FIGURES.map(([name], index) => h("div", {}, h("dt", {}, name), values[index])),
    ),
    update({ sections, now }) {
      if (!sections.metrics) return;
      for (const [index, [, value]] of FIGURES.entries()) {
        const text = value(sections, now());
        if (values[index].textContent !== text) values[index].textContent = text;
      }
    },
  };
}
