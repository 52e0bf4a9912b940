// What stands above an episode: what it was, how it ended, and the other attempts of its task.

import { h, verdictPill } from "./dom.js";
import { counted, member, moment, seconds, versions, words, worth } from "./format.js";

/** `blind`: without what judges said. */
export function heading(detail, { blind = false } = {}) {
  const { trajectory, ruled, rubric, siblings, problems, earlier_attempts } = detail;
  const { task } = trajectory;
  const ruling = blind ? undefined : ruled.find((each) => each.judgement.rubric === rubric)?.judgement;
  const played = trajectory.versions?.length ? trajectory.versions : [task.policy_version];
  const about = [
    words(trajectory.outcome),
    counted(trajectory.num_steps ?? 0, "step"),
    `version ${versions(Math.min(...played), Math.max(...played))}`,
    `difficulty ${task.difficulty ?? 1}`,
    task.split,
    task.website,
    trajectory.worker,
    moment(trajectory.ended_at),
    trajectory.timings?.total_s ? seconds(trajectory.timings.total_s) : null,
    earlier_attempts.length
      ? `attempt ${trajectory.attempt}: ${earlier_attempts.length} before it were abandoned`
      : null,
  ].filter(Boolean);
  return [
    blind ? back("/label", "Label") : back(),
    h(
      "header",
      { class: "episode-head" },
      h("h1", {}, task.instruction),
      h(
        "p",
        { class: "about" },
        blind ? null : verdictPill(ruling),
        ruling?.reward !== undefined && ruling?.reward !== null
          ? h("b", { class: "reward" }, `reward ${worth(ruling.reward)}`)
          : null,
        about.join(" · "),
      ),
      h("p", { class: "name" }, task.episode),
      trajectory.answer ? h("p", { class: "answer" }, h("b", {}, "Answer: "), trajectory.answer) : null,
      trajectory.error || trajectory.navigation_error
        ? h("p", { class: "problem" }, trajectory.error || trajectory.navigation_error)
        : null,
      problems.map((problem) => h("p", { class: "problem", role: "alert" }, problem)),
      !blind && siblings.length > 1 ? attempts(siblings, task) : null,
    ),
  ];
}

export function back(to = listed(), where = "Episodes") {
  return h("p", { class: "back" }, h("a", { href: to }, `‹ ${where}`));
}

function listed() {
  const query = remembered().query;
  return query ? `/episodes?${query}` : "/episodes";
}

function attempts(siblings, task) {
  const links = siblings.map(({ summary, ruling }) => {
    const own = summary.episode === task.episode;
    const tone = ruling?.verdict === "success" ? "good" : ruling?.verdict === "failure" ? "bad" : "other";
    // An episode of another round is told by its round.
    const round = summary.group === task.group ? "" : `${summary.group.split("-").slice(0, 2).join("-")} `;
    const said = ruling ? `${ruling.verdict} ${worth(ruling.reward)}` : "not judged";
    const text = `${round}${member(summary.episode)} · ${said}`;
    return own
      ? h("span", { class: `attempt ${tone}`, "aria-current": "true" }, text)
      : h(
          "span",
          { class: `attempt ${tone}` },
          h("a", { href: `/episodes/${summary.episode}` }, text),
          h(
            "a",
            {
              class: "with",
              href: `/compare?a=${task.episode}&b=${summary.episode}`,
              "aria-label": `compare with ${summary.episode}`,
            },
            "compare",
          ),
        );
  });
  return h("p", { class: "attempts" }, h("span", { class: "label" }, "attempts of this task"), links);
}

/** The list that was looked at last. */
export function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem("episodes")) ?? {};
  } catch {
    return {};
  }
}
