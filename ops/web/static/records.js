// What is fetched when it is looked at: a step's prompt, and its records as JSON.

import { ask } from "./api.js";
import { h, show } from "./dom.js";
import { stepLinks } from "./judge.js";
import { shot } from "./overlay.js";

export function promptPanel(detail, step) {
  return fetched(`${address(detail)}/steps/${step.step}/prompt`, (prompt) => [
    h(
      "p",
      { class: "soft" },
      prompt.screenshots.length ? ["Screenshots in the window: ", stepLinks(prompt.screenshots), ". "] : null,
      "Built again from the chain under the run's configuration",
      step.answer?.num_prompt_tokens ? `; it was ${step.answer.num_prompt_tokens.toLocaleString("en")} tokens.` : ".",
    ),
    prompt.remark ? h("p", { class: "problem" }, prompt.remark) : null,
    prompt.messages.map(({ role, parts }) =>
      h(
        "section",
        { class: `message ${role}` },
        h("h3", {}, role),
        parts.map((part) => partView(detail, part)),
      ),
    ),
  ]);
}

function partView(detail, { text, screenshot }) {
  if (screenshot === null) return h("pre", {}, text);
  const seen = detail.steps[screenshot];
  return h(
    "a",
    { class: "inlay", href: `#step-${screenshot + 1}:prompt` },
    shot(seen, { drawn: false, lazy: true }),
    h("span", {}, `screenshot of step ${screenshot + 1}`),
  );
}

/** `blind`: without the whole episode, whose judgements say what it was worth. */
export function recordPanel(detail, step, { blind = false } = {}) {
  return [
    blind
      ? null
      : h("p", {}, h("a", { class: "button", href: `${address(detail)}/download` }, "Download the whole episode as JSON")),
    detail.steps.some((each) => each.page?.screenshot)
      ? h("p", {}, h("a", { class: "button", href: `${address(detail)}/film.webp` }, "Watch it as a film (WebP)"))
      : null,
    detail.trajectory.network
      ? h("p", {}, h("a", { class: "button", href: `${address(detail)}/traffic.har` }, "Download its traffic (HAR)"))
      : null,
    h("p", { class: "soft" }, "Records number steps from 0, pages from 1."),
    fetched(`${address(detail)}/steps/${step.step}/raw`, (found) =>
      Object.entries(found).map(([name, record]) => [
        h("h2", {}, name),
        h("pre", { class: "json" }, JSON.stringify(record, null, 2)),
      ]),
    ),
  ];
}

const address = (detail) => `/api/episodes/${detail.trajectory.task.episode}`;

function fetched(path, view) {
  const place = h("div", {}, h("p", { class: "wait" }, "Reading …"));
  ask(path).then(
    (found) => show(place, view(found)),
    (error) => show(place, h("p", { class: "problem", role: "alert" }, error.message)),
  );
  return place;
}
