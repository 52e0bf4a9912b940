// What the judges said, stage by stage, and what their models answered.

import { facts, h, pill, verdictPill } from "./dom.js";
import { seconds, whole, worth } from "./format.js";

export function judgePanel(detail) {
  if (!detail.ruled.length) return h("p", {}, "No judge has ruled on this episode yet.");
  const counting = ({ judgement }) => judgement.rubric === detail.rubric;
  return [...detail.ruled.filter(counting), ...detail.ruled.filter((ruled) => !counting(ruled))].map((ruled) =>
    judgementView(ruled, detail),
  );
}

function judgementView({ judgement, calls }, { keeps_calls }) {
  const stages = judgement.stages ?? [];
  return h(
    "section",
    { class: "judgement" },
    h(
      "h2",
      {},
      judgement.rubric,
      " ",
      verdictPill(judgement),
      h("span", { class: "reward" }, `reward ${worth(judgement.reward)}`),
    ),
    facts([
      ["judge", judgement.judge],
      ["took", judgement.judged_s ? seconds(judgement.judged_s) : null],
      ["site", judgement.blocked ? "blocked the agent" : null],
    ]),
    judgement.error ? h("p", { class: "problem" }, judgement.error) : null,
    stages.length
      ? h("ol", { class: "stages" }, stages.map(stageView))
      : h("p", { class: "soft" }, "This judge has no stages."),
    partsView(judgement),
    usageView(judgement),
    callsView(calls, judgement, keeps_calls),
  );
}

function stageView({ stage, passed, reasoning, votes = [], evidence = [] }) {
  return h(
    "li",
    { class: passed ? "ruled good" : "ruled bad" },
    h(
      "h3",
      {},
      stage,
      " ",
      pill(passed ? "passed" : "failed"),
      votes.length
        ? h("span", { class: "soft" }, ` ${votes.filter((vote) => vote === passed).length} of ${votes.length} votes`)
        : null,
    ),
    reasoning ? h("p", { class: "reasoning" }, reasoning) : h("p", { class: "soft" }, "No reasoning is stored."),
    evidence.length ? h("p", { class: "soft" }, "shown: ", stepLinks(evidence)) : null,
  );
}

export function stepLinks(steps) {
  return steps.map((step, index) => [index ? ", " : "", h("a", { href: `#step-${step + 1}` }, `step ${step + 1}`)]);
}

function partsView({ parts = [] }) {
  if (!parts.length) return null;
  return h(
    "table",
    { class: "small" },
    h("caption", {}, "Parts of the reward"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["part", "value", "by step"].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h(
      "tbody",
      {},
      parts.map((part) =>
        h(
          "tr",
          {},
          h("td", {}, part.name),
          h("td", {}, worth(part.value)),
          h("td", {}, (part.steps ?? []).map(worth).join("  ")),
        ),
      ),
    ),
  );
}

function usageView({ usage = [] }) {
  if (!usage.length) return null;
  return h(
    "table",
    { class: "small" },
    h("caption", {}, "What it took"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["stage", "model", "calls", "tokens in", "cached", "out", "cost", "time"].map((name) =>
          h("th", { scope: "col" }, name),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      usage.map((each) =>
        h(
          "tr",
          {},
          [
            each.stage,
            each.model,
            `${each.num_calls ?? 0}${each.num_failures ? ` (+${each.num_failures} failed)` : ""}`,
            whole(each.prompt_tokens ?? 0),
            whole(each.cached_tokens ?? 0),
            whole(each.completion_tokens ?? 0),
            each.cost ? each.cost.toFixed(6) : "–",
            seconds(each.seconds ?? 0),
          ].map((value) => h("td", {}, value)),
        ),
      ),
    ),
  );
}

function callsView(calls, judgement, keepsCalls) {
  if (!calls.length) {
    if (!(judgement.usage ?? []).length) return null;
    return h(
      "p",
      { class: "soft" },
      keepsCalls ? "What its models answered is no longer kept." : "An archive does not hold what its models answered.",
    );
  }
  return [
    h("h3", {}, "What its models answered"),
    calls.map((call) =>
      h(
        "details",
        { class: "call" },
        h(
          "summary",
          {},
          call.stage,
          " ",
          pill(call.accepted ? "verdict" : "no verdict", call.accepted ? "other" : "failed"),
          h(
            "span",
            { class: "soft" },
            ` ${call.model} · ${whole(call.prompt_tokens ?? 0)} tokens in, ${whole(call.completion_tokens ?? 0)} out · ${seconds(call.seconds ?? 0)}`,
          ),
        ),
        (call.screenshots ?? []).length ? h("p", { class: "soft" }, "was shown: ", stepLinks(call.screenshots)) : null,
        h("pre", {}, call.text || "(empty)"),
      ),
    ),
  ];
}
