// What was asked for, and what is known of how it should end.

import { facts, h } from "./dom.js";

function keptOut({ site, provider, sign, attempt, egress, elsewhere, lifted }) {
  const where = [`attempt ${attempt}`, egress && `by ${egress}`, elsewhere && "another site", lifted && "lifted"];
  return `${site}: ${provider}, ${sign} (${where.filter(Boolean).join(", ")})`;
}

/** `blind`: without the page's own reward. */
export function taskPanel({ trajectory }, { blind = false } = {}) {
  const { task, final_state: final } = trajectory;
  return [
    h(
      "section",
      {},
      h("h2", {}, "Task"),
      facts([
        ["instruction", task.instruction],
        ["task", task.task],
        ["group", task.group],
        ["starts at", task.website],
        ["domain", [task.domain, task.subdomain].filter(Boolean).join(" / ")],
        ["split", task.split],
        ["difficulty", task.difficulty ?? 1],
        ["steps allowed", task.max_steps],
        ["admitted under version", task.policy_version],
        ["decoding", task.greedy ? "greedy" : null],
        ["demonstration", task.demonstrate ? "by the page's scripted oracle" : null],
      ]),
    ),
    task.reference_answer ? h("section", {}, h("h2", {}, "Reference answer"), h("p", {}, task.reference_answer)) : null,
    task.facts?.length
      ? h(
          "section",
          {},
          h("h2", {}, "Facts of its rubric"),
          h(
            "ul",
            {},
            task.facts.map((fact) => h("li", {}, fact.description)),
          ),
        )
      : null,
    task.checks?.length
      ? h(
          "section",
          {},
          h("h2", {}, "Checks"),
          h(
            "ul",
            {},
            task.checks.map((check) =>
              h(
                "li",
                {},
                `${check.kind} ${check.match ?? "equals"} `,
                h("code", {}, check.expected.join(" | ")),
                check.expression ? [" of ", h("code", {}, check.expression)] : null,
              ),
            ),
          ),
        )
      : null,
    h(
      "section",
      {},
      h("h2", {}, "How it ended"),
      facts([
        ["outcome", trajectory.outcome],
        ["answer", trajectory.answer],
        ["error", trajectory.error || trajectory.navigation_error],
        ["reward of the page", blind ? null : trajectory.environment_reward],
        ["last address", final?.url],
        ["last title", final?.title],
        ["values of its checks", final?.values?.join(" | ")],
        ["unparsed answers", trajectory.num_unparsed || null],
        ["worker", trajectory.worker],
        ["egress", trajectory.egress],
        ["kept out", trajectory.blockages?.map(keptOut).join("; ")],
      ]),
    ),
  ];
}
