// Where the time went: over the whole episode by phase, and step by step.

import { h } from "./dom.js";
import { seconds } from "./format.js";

const PHASES = [
  ["reset_s", "first page"],
  ["observe_s", "observing"],
  ["policy_s", "policy"],
  ["act_s", "acting"],
];

export function timingPanel({ trajectory, steps }, current) {
  const timings = trajectory.timings ?? {};
  const known = PHASES.map(([key, name]) => [name, timings[key] ?? 0]);
  const sum = known.reduce((total, [, value]) => total + value, 0);
  const total = Math.max(timings.total_s ?? 0, sum);
  const phases = [...known, ["other", Math.max(0, total - sum)]];
  return [
    h(
      "section",
      {},
      h("h2", {}, `Whole episode, ${seconds(total)}`),
      total
        ? [
            bar(
              phases.map(([, value]) => value),
              total,
            ),
            h(
              "table",
              { class: "small" },
              h(
                "tbody",
                {},
                phases.map(([name, value], index) =>
                  h(
                    "tr",
                    {},
                    h("th", { scope: "row" }, h("span", { class: `key c${index}` }), name),
                    h("td", {}, seconds(value)),
                    h("td", {}, `${Math.round((100 * value) / total)} %`),
                  ),
                ),
              ),
            ),
          ]
        : h("p", { class: "soft" }, "No timings are stored."),
    ),
    h(
      "section",
      {},
      h("h2", {}, "Step by step"),
      h(
        "p",
        { class: "soft" },
        "Between the records of each step: until the policy's answer, then until the next page was seen.",
      ),
      stepRows(steps, current),
    ),
  ];
}

function bar(values, total) {
  return h(
    "div",
    { class: "bar-of-time", "aria-hidden": "true" },
    values.map((value, index) => h("span", { class: `c${index}`, vars: { "--share": String(value / total) } })),
  );
}

function stepRows(steps, current) {
  const longest = Math.max(0.001, ...steps.map((step) => (step.policy_s ?? 0) + (step.page_s ?? 0)));
  const rows = steps
    .filter((step) => step.answer)
    .map((step) =>
      h(
        "tr",
        { class: step.step === current ? "selected" : null },
        h("th", { scope: "row" }, h("a", { href: `#step-${step.step + 1}:timing` }, `step ${step.step + 1}`)),
        h(
          "td",
          { class: "wide" },
          h(
            "div",
            { class: "bar-of-time", "aria-hidden": "true" },
            h("span", { class: "c2", vars: { "--share": String((step.policy_s ?? 0) / longest) } }),
            h("span", { class: "c3", vars: { "--share": String((step.page_s ?? 0) / longest) } }),
          ),
        ),
        h("td", {}, seconds(step.policy_s)),
        h("td", {}, seconds(step.page_s)),
        h("td", {}, seconds(step.answer.generated_s)),
      ),
    );
  return h(
    "table",
    { class: "small" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["step", "", "policy", "page", "generating"].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h("tbody", {}, rows),
  );
}
