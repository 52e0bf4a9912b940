// The list of episodes: what is asked for stands in the address, so every view of it can be linked.

import { ask, listen } from "./api.js";
import { filterBar } from "./filters.js";
import { h, show, verdictPill } from "./dom.js";
import { attemptsOf, counted, member, moment, percent, seconds, versions, whole, words, worth } from "./format.js";
import { bindKeys } from "./keys.js";

const COLUMNS = [
  { name: "thumb", title: "last screenshot" },
  { name: "verdict" },
  { name: "task", sort: "task" },
  { name: "outcome" },
  { name: "reward", sort: "reward", number: true },
  { name: "steps", sort: "steps", number: true },
  { name: "version", sort: "version", number: true },
  { name: "difficulty", sort: "difficulty", number: true },
  { name: "took", sort: "seconds", number: true },
  { name: "ended", sort: "ended", number: true },
];
const main = document.getElementById("main");
const parameters = new URLSearchParams(location.search);
const compared = new Set();
let listing = null;
let selected = null;
let asked = 0;

const problem = h("p", { class: "problem", role: "alert", hidden: true });
const counts = h("p", { class: "counts", role: "status" });
const fresh = h(
  "button",
  {
    type: "button",
    class: "fresh",
    hidden: true,
    onclick: () => {
      scrollTo(0, 0);
      load();
    },
  },
  "Show what came",
);
const compare = h("a", { class: "button", "aria-disabled": "true" }, "Compare two");
const body = h("tbody");
const head = h("tr");
const pages = h("nav", { class: "pages", "aria-label": "Pages" });
const filters = filterBar(parameters, changed);

show(
  main,
  h("h1", {}, "Episodes"),
  filters.element,
  problem,
  h("div", { class: "above" }, counts, fresh, compare),
  h("table", { class: "episodes" }, h("thead", {}, head), body),
  pages,
);

function changed() {
  parameters.delete("page");
  go();
}

function go() {
  history.replaceState(null, "", parameters.size ? `?${parameters}` : location.pathname);
  load();
}

async function load() {
  const mine = ++asked;
  try {
    const found = await ask(`/api/episodes?${parameters}`);
    if (mine !== asked) return;
    listing = found;
    problem.hidden = found.problems.length === 0;
    problem.textContent = found.problems.join(" ");
    draw();
  } catch (error) {
    if (mine !== asked) return;
    problem.hidden = false;
    problem.textContent = error.message;
  }
}

function draw() {
  fresh.hidden = true;
  filters.offer(listing);
  counts.textContent = summary();
  show(head, h("th", {}, h("span", { class: "sr" }, "compare")), COLUMNS.map(heading));
  const hadFocus = body.contains(document.activeElement);
  show(body, listing.rows.map(row));
  if (listing.rows.length === 0)
    show(body, h("tr", { class: "none" }, h("td", { colspan: COLUMNS.length + 1 }, empty())));
  show(pages, listing.num_pages > 1 ? pageLinks() : []);
  sessionStorage.setItem(
    "episodes",
    JSON.stringify({ query: String(parameters), episodes: listing.rows.map((each) => each.summary.episode) }),
  );
  select(body.querySelector(`tr[data-episode="${CSS.escape(selected ?? "")}"]`), { focus: hadFocus });
  offerComparison();
}

function summary() {
  const { num_matching, num_episodes, num_let_go, num_successes, num_with_verdict, mean_reward, reading } = listing;
  const parts = [
    num_matching === num_episodes
      ? counted(num_episodes, "episode")
      : `${whole(num_matching)} of ${whole(num_episodes)} episodes`,
  ];
  if (num_with_verdict)
    parts.push(
      `${whole(num_successes)} of ${whole(num_with_verdict)} with a verdict succeeded (${percent(num_successes / num_with_verdict)})`,
    );
  if (mean_reward !== null) parts.push(`mean reward ${worth(Number(mean_reward.toFixed(3)))}`);
  if (num_let_go) parts.push(`${whole(num_let_go)} older ones are not listed`);
  if (reading) parts.push("still reading …");
  return parts.join(" · ");
}

function empty() {
  if (listing.reading) return "Nothing was read yet.";
  return listing.num_episodes
    ? "No episode is like this: take a filter away."
    : "No episode has ended yet. This page shows them as they end.";
}

function heading({ name, title, sort, number }) {
  if (title) return h("th", { class: name, scope: "col" }, h("span", { class: "sr" }, title));
  const order = parameters.get("sort") ?? "-ended";
  const descending = order.startsWith("-");
  const sorted = sort && sort === order.replace(/^-/, "");
  const turn = () => {
    const next = sorted && descending ? sort : `-${sort}`;
    if (next === "-ended") parameters.delete("sort");
    else parameters.set("sort", next);
    changed();
  };
  const arrow = h("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (descending ? "↓" : "↑") : "");
  return h(
    "th",
    {
      class: number ? `number ${name}` : name,
      scope: "col",
      "aria-sort": sorted ? (descending ? "descending" : "ascending") : null,
    },
    sort ? h("button", { type: "button", onclick: turn }, number ? [arrow, name] : [name, arrow]) : name,
  );
}

function row({ summary, ruling }) {
  const box = h("input", {
    type: "checkbox",
    "aria-label": `compare ${summary.episode}`,
    checked: compared.has(summary.episode),
    onchange: (event) => {
      compared[event.target.checked ? "add" : "delete"](summary.episode);
      offerComparison();
    },
  });
  const version = versions(summary.first_version, summary.last_version);
  const cell = (name, value, attributes = {}) =>
    h("td", { class: name, "data-name": words(name.split(" ")[0]), ...attributes }, value);
  return h(
    "tr",
    {
      "data-episode": summary.episode,
      onclick: (event) => {
        if (!event.target.closest("a, input")) open(summary.episode, event);
      },
    },
    h("td", { class: "box" }, box),
    h("td", { class: "thumb" }, lastScreenshot(summary)),
    cell("verdict", verdictPill(ruling)),
    h(
      "td",
      { class: "task" },
      h("a", { class: "what", href: `/episodes/${summary.episode}` }, summary.instruction || summary.episode),
      h(
        "span",
        { class: "where" },
        h("a", { href: `?${attemptsOf(summary)}`, title: "All attempts of this task" }, summary.task),
        ` ${member(summary.episode)} · `,
        `${summary.site} · ${summary.split}`,
        summary.answer ? h("span", { class: "answer" }, ` · answer: ${summary.answer}`) : "",
        summary.error ? h("span", { class: "error" }, ` · ${summary.error}`) : "",
      ),
    ),
    cell("outcome", words(summary.outcome)),
    cell("reward number", worth(ruling?.reward)),
    cell("steps number", summary.num_steps),
    cell("version number", version),
    cell("difficulty number", summary.difficulty),
    cell("took number", summary.seconds ? seconds(summary.seconds) : "–"),
    cell("ended number", moment(summary.ended_at)),
  );
}

/** When it ended stands in the address, which so names its content. */
function lastScreenshot({ episode, ended_at }) {
  const image = h("img", {
    src: `/api/episodes/${episode}/last-screenshot?ended=${ended_at}`,
    loading: "lazy",
    decoding: "async",
    alt: "",
  });
  image.addEventListener("error", () => image.remove());
  return image;
}

function open(episode, event) {
  if (getSelection()?.toString()) return;
  const address = `/episodes/${episode}`;
  if (event?.ctrlKey || event?.metaKey) window.open(address);
  else location.assign(address);
}

function offerComparison() {
  const pair = [...compared].slice(-2);
  compare.textContent =
    compared.size < 2 ? `Compare two${compared.size ? " (1 chosen)" : ""}` : "Compare the two chosen";
  compare.setAttribute("aria-disabled", String(pair.length < 2));
  if (pair.length === 2) compare.setAttribute("href", `/compare?a=${pair[0]}&b=${pair[1]}`);
  else compare.removeAttribute("href");
}

function pageLinks() {
  const { page, num_pages } = listing;
  const link = (to, text, label) =>
    h(
      "button",
      {
        type: "button",
        disabled: to < 1 || to > num_pages || to === page,
        "aria-label": label,
        onclick: () => turnTo(to),
      },
      text,
    );
  return [
    link(1, "«", "first page"),
    link(page - 1, "‹ Previous"),
    h("span", {}, `page ${whole(page)} of ${whole(num_pages)}`),
    link(page + 1, "Next ›"),
    link(num_pages, "»", "last page"),
  ];
}

function turnTo(page) {
  if (page < 1 || page > listing.num_pages) return;
  if (page === 1) parameters.delete("page");
  else parameters.set("page", page);
  selected = null;
  scrollTo(0, 0);
  go();
}

function select(chosen, { focus = true } = {}) {
  for (const each of body.querySelectorAll("tr.selected")) each.classList.remove("selected");
  if (!chosen) return;
  chosen.classList.add("selected");
  selected = chosen.dataset.episode;
  if (!focus) return;
  chosen.querySelector(".what").focus({ preventScroll: true });
  chosen.scrollIntoView({ block: "nearest" });
}

function move(by) {
  const rows = [...body.querySelectorAll("tr[data-episode]")];
  const at = rows.findIndex((each) => each.dataset.episode === selected);
  select(rows[Math.max(0, Math.min(rows.length - 1, at + by))]);
}

bindKeys([
  { keys: ["j", "ArrowDown"], does: "next episode", run: () => move(1) },
  { keys: ["k", "ArrowUp"], does: "previous episode", run: () => move(-1) },
  { keys: ["Enter", "o"], does: "open it", run: () => selected && open(selected) },
  { keys: ["x"], does: "choose it for comparison", run: () => body.querySelector("tr.selected input")?.click() },
  { keys: ["c"], does: "compare the two chosen", run: () => compare.hasAttribute("href") && compare.click() },
  { keys: ["/"], does: "search", run: () => filters.focus() },
  { keys: ["n"], does: "next page", run: () => turnTo(listing.page + 1) },
  { keys: ["p"], does: "previous page", run: () => turnTo(listing.page - 1) },
]);

listen((revision) => {
  if (revision === listing?.revision) return;
  const isTop = listing === null || listing.reading || (listing.page === 1 && scrollY < 80);
  if (isTop) load();
  else fresh.hidden = false;
});
addEventListener("popstate", () => location.reload());
load();
