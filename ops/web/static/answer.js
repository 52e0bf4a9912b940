// What the policy said at one step, and what became of it.

import { facts, h, pill } from "./dom.js";
import { seconds, versions, words } from "./format.js";
import { tokenView } from "./tokens.js";

/** `blind`: without what judges said. */
export function answerPanel(detail, step, { blind = false } = {}) {
  const { answer } = step;
  if (!answer)
    return h(
      "p",
      {},
      step.page
        ? "The policy was not asked any more: this is where its last action led."
        : "What was answered here is no longer kept.",
    );
  return [
    h(
      "section",
      {},
      h("h2", {}, "Action"),
      h("p", { class: "done" }, answer.words, " ", answer.parsed ? null : pill("not parsed", "failed")),
      answer.parsed
        ? null
        : h("p", { class: "soft" }, "The response holds no readable action: a wait of 2 s was done instead."),
      answer.thought && answer.thought !== answer.words ? h("p", { class: "soft" }, answer.thought) : null,
    ),
    h("section", {}, h("h2", {}, "What the page did"), effectView(detail, step)),
    h("section", {}, h("h2", {}, "Response"), h("pre", {}, answer.response || "(empty)")),
    h("section", {}, h("h2", {}, "Tokens"), tokenView(answer)),
    h(
      "section",
      {},
      h("h2", {}, "Sampled"),
      facts([
        ["policy version", spans(answer)],
        ["worker", answer.worker],
        ["temperature", answer.temperature],
        ["ended by", answer.finish_reason],
        ["prompt tokens", answer.num_prompt_tokens || null],
        ["completion tokens", answer.tokens.length || null],
        ["waited", seconds(answer.queued_s)],
        ["generated in", seconds(answer.generated_s)],
        ["reward of this step", blind ? null : stepReward(detail, step.step)],
      ]),
    ),
  ];
}

export function effectView({ steps }, { step, effect }) {
  const isLast = step === steps.at(-1).step;
  if (!effect)
    return h(
      "p",
      { class: "soft" },
      isLast ? "The episode ended with this action: no page was looked at behind it." : "What it led to is no longer kept.",
    );
  const tone = { changed: "success", refused: "failed", navigation_failed: "failed" }[effect.effect] ?? "other";
  return [
    h(
      "p",
      {},
      pill(words(effect.effect), tone),
      effect.hit ? h("span", { class: "hit" }, ` hit ${effect.hit}`) : null,
      effect.same_screenshot ? h("span", { class: "soft" }, " the screenshot stayed the same") : null,
    ),
    effect.error ? h("p", { class: "problem" }, effect.error) : null,
    effect.changes.length
      ? h(
          "ul",
          { class: "changes" },
          effect.changes.map((change) => h("li", {}, change)),
        )
      : null,
  ];
}

function spans({ versions: sampled }) {
  if (sampled.length < 2) return sampled.length ? String(sampled[0].version) : null;
  return sampled.map((span) => `${span.version} (tokens ${versions(span.start + 1, span.end)})`).join(", ");
}

function stepReward(detail, step) {
  const ruled = detail.ruled.find((each) => each.judgement.rubric === detail.rubric);
  return ruled?.judgement.step_rewards?.[step] ?? null;
}
