// One episode, step by step. The address names the step and what is shown of it: `#step-3`, `#step-3:judge`.

import { ask, listen } from "./api.js";
import { answerPanel } from "./answer.js";
import { h, show } from "./dom.js";
import { words } from "./format.js";
import { back, heading, remembered } from "./heading.js";
import { judgePanel } from "./judge.js";
import { bindKeys } from "./keys.js";
import { labelBar, pathOf } from "./label_bar.js";
import { shot } from "./overlay.js";
import { promptPanel, recordPanel } from "./records.js";
import { taskPanel } from "./task.js";
import { timingPanel } from "./timing.js";

// Whoever labels is not told what judges said.
const labels = new URLSearchParams(location.search).has("label");
const TABS = [
  ["answer", "Answer"],
  ["prompt", "Prompt"],
  ...(labels ? [] : [["judge", "Judge"]]),
  ["timing", "Timing"],
  ["task", "Task"],
  ["record", "Record"],
];
const PER_STEP = new Set(["answer", "prompt", "record", "timing"]);
const main = document.getElementById("main");
const name = decodeURIComponent(location.pathname.split("/").pop());
let detail = null;
let sheet = null;
let bar = null;
let step = 0;
let tab = "answer";
let drawn = true;
let marked = false;

const stage = h("div", { class: "stage" });
const caption = h("p", { class: "caption" });
const strip = h("ol", { class: "strip", "aria-label": "Steps" });
const panel = h("div", { class: "panel", role: "tabpanel", id: "panel", tabindex: "0" });
const position = h("span", { class: "position", "aria-live": "polite" });
const tabs = TABS.map(([each, title]) =>
  h(
    "button",
    { type: "button", role: "tab", id: `tab-${each}`, "aria-controls": "panel", onclick: () => go(step, each) },
    title,
  ),
);
const tablist = h("div", { class: "tabs", role: "tablist", onkeydown: walkTabs }, tabs);
const marks = h("input", {
  type: "checkbox",
  onchange: () => {
    marked = marks.checked;
    drawStage();
  },
});
const action = h("input", {
  type: "checkbox",
  checked: true,
  onchange: () => {
    drawn = action.checked;
    drawStage();
  },
});

async function load() {
  try {
    detail = await ask(`/api/episodes/${encodeURIComponent(name)}`);
    sheet = labels ? await ask("/api/labels") : null;
  } catch (error) {
    show(main, back(), h("h1", {}, name), h("p", { class: "problem", role: "alert" }, error.message));
    return;
  }
  document.title = document.title.replace("Episode", detail.trajectory.task.task);
  const elements = detail.steps.some((each) => each.page?.elements.length);
  const ratios = detail.steps
    .map((each) => each.page?.screenshot)
    .filter(Boolean)
    .map(({ width, height }) => width / height);
  if (ratios.length) stage.style.setProperty("--tallest", Math.min(...ratios));
  bar = sheet && labelBar(sheet, name);
  show(
    main,
    heading(detail, { blind: labels }),
    bar?.element,
    h(
      "div",
      { class: "columns" },
      h(
        "section",
        { class: "seen", "aria-label": "What the policy saw" },
        h(
          "div",
          { class: "controls" },
          h("button", { type: "button", onclick: () => move(-1), "aria-label": "previous step" }, "‹"),
          position,
          h("button", { type: "button", onclick: () => move(1), "aria-label": "next step" }, "›"),
          h("label", { class: "check" }, action, "action"),
          elements ? h("label", { class: "check" }, marks, "marks") : null,
        ),
        strip,
        stage,
        caption,
      ),
      h("section", { class: "said", "aria-label": "What was said" }, tablist, panel),
    ),
  );
  show(strip, detail.steps.map(thumbnail));
  follow();
  if (!labels) awaitVerdict();
}

/** An episode without a verdict is asked for again when there is one. */
function awaitVerdict() {
  if (detail.ruled.some(({ judgement }) => judgement.rubric === detail.rubric)) return;
  const stop = listen(async () => {
    const found = await ask(`/api/episodes?q=${encodeURIComponent(name)}`).catch(() => null);
    if (!found?.rows.some(({ summary, ruling }) => summary.episode === name && ruling)) return;
    stop();
    load();
  });
}

function thumbnail(each) {
  const rest = each.page ? "end" : "gone";
  const said = each.answer ? each.answer.words : rest;
  const unread = each.answer && !each.answer.parsed;
  return h(
    "li",
    {},
    h(
      "a",
      { href: `#step-${each.step + 1}`, title: said },
      shot(each, { lazy: true, name: "" }),
      h(
        "span",
        { class: unread ? "bad" : "" },
        `${each.step + 1} ${each.answer ? words(each.answer.action.kind) : rest}`,
      ),
    ),
  );
}

function follow() {
  const [, number, shown] = location.hash.match(/^#step-(\d+)(?::(\w+))?$/) ?? [];
  step = Math.max(0, Math.min(detail.steps.length - 1, Number(number ?? 1) - 1));
  tab = TABS.some(([each]) => each === shown) ? shown : number ? "answer" : tab;
  draw();
}

function go(to, shown = tab) {
  if (detail === null || (to !== step && (to < 0 || to >= detail.steps.length))) return;
  history.replaceState(history.state, "", shown === "answer" ? `#step-${to + 1}` : `#step-${to + 1}:${shown}`);
  const redraws = shown !== tab || PER_STEP.has(shown);
  [step, tab] = [to, shown];
  draw(redraws);
}

const move = (by) => go(step + by);

function draw(panelToo = true) {
  const many = detail.steps.length;
  position.textContent = many ? `step ${step + 1} of ${many}` : "no steps";
  for (const [index, item] of [...strip.children].entries()) {
    if (index === step) item.firstChild.setAttribute("aria-current", "step");
    else item.firstChild.removeAttribute("aria-current");
  }
  // Sideways alone: the page itself must not jump.
  const chosen = strip.children[step];
  if (chosen) strip.scrollLeft = chosen.offsetLeft - (strip.clientWidth - chosen.clientWidth) / 2;
  drawStage();
  for (const [index, button] of tabs.entries()) {
    const isShown = TABS[index][0] === tab;
    button.setAttribute("aria-selected", String(isShown));
    button.tabIndex = isShown ? 0 : -1;
    if (isShown) panel.setAttribute("aria-labelledby", button.id);
  }
  if (panelToo) drawPanel();
}

function drawStage() {
  const now = detail.steps[step];
  if (!now) {
    show(stage, h("p", { class: "wait" }, "Nothing was seen: the episode ended before its first page."));
    return;
  }
  show(stage, shot(now, { drawn, marks: marked }));
  show(
    caption,
    h("b", {}, now.answer ? now.answer.words : now.page ? "The episode ended here." : "Nothing of this step is kept."),
    now.answer && !now.answer.parsed ? h("span", { class: "pill bad" }, "not parsed") : null,
    now.page ? h("span", { class: "url" }, `${now.page.title} — ${now.page.url}`) : null,
    now.page ? now.page.errors.map((error) => h("span", { class: "url problem" }, error)) : null,
  );
}

function drawPanel() {
  const now = detail.steps[step];
  const panels = {
    answer: () => answerPanel(detail, now, { blind: labels }),
    prompt: () => promptPanel(detail, now, go),
    judge: () => judgePanel(detail),
    timing: () => timingPanel(detail, step),
    task: () => taskPanel(detail, { blind: labels }),
    record: () => recordPanel(detail, now, { blind: labels }),
  };
  show(panel, now || !PER_STEP.has(tab) || tab === "timing" ? panels[tab]() : h("p", {}, "There is no step."));
}

function neighbour(by) {
  if (sheet) {
    const to = sheet.labels[sheet.labels.findIndex((label) => label.episode === name) + by];
    if (to) location.assign(pathOf(to));
    return;
  }
  const episodes = remembered().episodes ?? [];
  const at = episodes.indexOf(name);
  if (at >= 0 && episodes[at + by]) location.assign(`/episodes/${episodes[at + by]}`);
}

function turn(by) {
  const at = TABS.findIndex(([each]) => each === tab);
  go(step, TABS[(at + by + TABS.length) % TABS.length][0]);
}

/** On a tab the arrows walk the tabs, not the steps. */
function walkTabs(event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  turn(by);
  tablist.querySelector("[aria-selected=true]").focus();
}

const LABEL_KEYS = [
  { keys: ["s"], does: "label it a success", run: () => bar?.say(true) },
  { keys: ["f"], does: "label it a failure", run: () => bar?.say(false) },
  { keys: ["n"], does: "leave it for later", run: () => bar?.say(null) },
];
bindKeys([
  ...(labels ? LABEL_KEYS : []),
  { keys: ["j", "ArrowRight"], does: "next step", run: () => move(1) },
  { keys: ["k", "ArrowLeft"], does: "previous step", run: () => move(-1) },
  { keys: ["Home"], does: "first step", run: () => go(0) },
  { keys: ["End"], does: "last step", run: () => go(detail.steps.length - 1) },
  { keys: ["h"], does: "tab to the left", run: () => turn(-1) },
  { keys: ["l"], does: "tab to the right", run: () => turn(1) },
  { keys: ["a"], does: "draw the action in, or not", run: () => action.click() },
  { keys: ["["], does: "previous episode of the list", run: () => neighbour(-1) },
  { keys: ["]"], does: "next episode of the list", run: () => neighbour(1) },
  { keys: ["u"], does: "back to the list", run: () => main.querySelector(".back a").click() },
]);
addEventListener("hashchange", () => detail && follow());
load();
