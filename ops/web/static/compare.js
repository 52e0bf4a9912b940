// Two episodes side by side, step by step, and where they part.

import { ask } from "./api.js";
import { effectView } from "./answer.js";
import { h, pill, show, verdictPill } from "./dom.js";
import { attemptsOf, counted, member, versions, words, worth } from "./format.js";
import { bindKeys } from "./keys.js";
import { shot } from "./overlay.js";

const main = document.getElementById("main");
const parameters = new URLSearchParams(location.search);
let comparison = null;
let at = -1;

async function load() {
  try {
    comparison = await ask(`/api/compare?${parameters}`);
  } catch (error) {
    show(
      main,
      h("h1", {}, "Compare"),
      h("p", { class: "problem", role: "alert" }, error.message),
      h("p", {}, "Choose two episodes in the ", h("a", { href: "/episodes" }, "list"), "."),
    );
    return;
  }
  const { left, right, pairs, first_difference: parted, remark } = comparison;
  const names = namesOf(left, right);
  show(
    main,
    h(
      "p",
      { class: "back" },
      h("a", { href: `/episodes?${attemptsOf(left.trajectory.task)}` }, "‹ Attempts of this task"),
    ),
    h("h1", {}, left.trajectory.task.instruction),
    h(
      "p",
      { class: "counts", role: "status" },
      parted === null
        ? "They did the same at every step."
        : ["They part at ", h("a", { href: `#step-${parted + 1}` }, `step ${parted + 1}`), "."],
      remark ? ` ${remark}` : null,
      " ",
      h("a", { href: `/compare?a=${right.trajectory.task.episode}&b=${left.trajectory.task.episode}` }, "Swap"),
    ),
    left.problems.concat(right.problems).map((problem) => h("p", { class: "problem" }, problem)),
    h("div", { class: "sides heads" }, side(left, names[0]), side(right, names[1])),
    pairs.map((pair) => pairView(pair, parted)),
  );
  const wanted = location.hash.match(/^#step-(\d+)$/);
  if (wanted) go(Number(wanted[1]) - 1);
}

/** What tells the two apart, as short as that can be: tasks, members of one group, versions, or else their places. */
function namesOf(...sides) {
  const told = ({ trajectory }) => [
    `task ${trajectory.task.task}`,
    trajectory.task.split,
    member(trajectory.task.episode),
    `version ${versions(...playedVersions(trajectory))}`,
  ];
  const [left, right] = sides.map(told);
  const at = left.findIndex((name, index) => name !== right[index]);
  return at < 0 ? ["left", "right"] : [left[at], right[at]];
}

function playedVersions({ versions: played, task }) {
  return played?.length ? [Math.min(...played), Math.max(...played)] : [task.policy_version, task.policy_version];
}

function side({ trajectory, ruled, rubric }, name) {
  const { task } = trajectory;
  const judgement = ruled.find((each) => each.judgement.rubric === rubric)?.judgement;
  const said = [...(judgement?.stages ?? [])].reverse().find((stage) => stage.reasoning);
  return h(
    "section",
    { class: "side", "aria-label": task.episode },
    h(
      "h2",
      {},
      h("a", { href: `/episodes/${task.episode}` }, name),
      " ",
      verdictPill(judgement),
      h("span", { class: "reward" }, `reward ${worth(judgement?.reward)}`),
    ),
    h("p", { class: "name" }, task.episode),
    h(
      "p",
      { class: "about" },
      `${words(trajectory.outcome)} · ${counted(trajectory.num_steps ?? 0, "step")} · version ${versions(...playedVersions(trajectory))}`,
    ),
    trajectory.answer ? h("p", { class: "answer" }, h("b", {}, "Answer: "), trajectory.answer) : null,
    said ? h("p", { class: "reasoning" }, said.reasoning) : null,
  );
}

function pairView({ step, same_screenshot: sameScreenshot, same_action: sameAction }, parted) {
  const first = step === parted;
  return h(
    "section",
    {
      class: first ? "step-pair parted" : "step-pair",
      id: `step-${step + 1}`,
      tabindex: "-1",
      "aria-label": `step ${step + 1}`,
    },
    h(
      "h3",
      {},
      `Step ${step + 1} `,
      first ? pill("they part here", "failed") : null,
      h(
        "span",
        { class: "soft" },
        `${sameScreenshot ? "same screenshot" : "different screenshots"}, ${sameAction ? "same action" : "different actions"}`,
      ),
    ),
    h("div", { class: "sides" }, half(comparison.left, step), half(comparison.right, step)),
  );
}

function half(detail, number) {
  const step = detail.steps[number];
  if (!step) return h("div", { class: "half over" }, h("p", { class: "soft" }, "It was over."));
  const { answer } = step;
  return h(
    "div",
    { class: "half" },
    h("a", { href: `/episodes/${detail.trajectory.task.episode}#step-${number + 1}` }, shot(step, { lazy: true })),
    h(
      "p",
      { class: "done" },
      answer ? answer.words : "The end.",
      answer && !answer.parsed ? [" ", pill("not parsed", "failed")] : null,
    ),
    step.page ? h("p", { class: "url" }, step.page.url) : null,
    answer ? h("details", {}, h("summary", {}, "response"), h("pre", {}, answer.response)) : null,
    answer ? effectView(detail, step) : null,
  );
}

function go(number) {
  const rows = document.querySelectorAll(".step-pair");
  if (number < 0 || number >= rows.length) return;
  at = number;
  rows[at].focus({ preventScroll: true });
  rows[at].scrollIntoView({ block: "start" });
}

bindKeys([
  { keys: ["j", "ArrowDown"], does: "next step", run: () => go(at + 1) },
  { keys: ["k", "ArrowUp"], does: "previous step", run: () => go(at - 1) },
  {
    keys: ["d"],
    does: "where they part",
    run: () => comparison?.first_difference !== null && go(comparison.first_difference),
  },
  { keys: ["u"], does: "back to the attempts", run: () => main.querySelector(".back a")?.click() },
]);
load();
