// The run as it stands: alerts first, then metrics, every live episode as a cell, and the parts behind them.

import { h, show } from "./dom.js";
import { whole } from "./format.js";
import { bindKeys } from "./keys.js";
import { alertList } from "./live_alerts.js";
import { cellGrid } from "./live_cells.js";
import { rewardCurve, shareBars } from "./live_curve.js";
import { followRun } from "./live_feed.js";
import { metricGrid } from "./live_metrics.js";
import { cellFilters } from "./live_filters.js";
import { episodePanel } from "./live_panel.js";
import { outcomeTable, queueTable, streamTable, workerTable } from "./live_tables.js";

const main = document.getElementById("main");
const title = document.title;
const parameters = new URLSearchParams(location.search);
const news = h("p", { class: "problem", role: "alert", hidden: true });
const reading = h("p", { class: "soft", role: "status" }, "Reading …");
const counted = h("p", { class: "counts" }, "");
const alerts = alertList();
const metrics = metricGrid();
const filters = cellFilters(parameters, filtered);
const cells = cellGrid({ matches: filters.matches, chosen: open });
const panel = episodePanel({ closed: close });
const curve = rewardCurve();
const staleness = shareBars(
  "Staleness of the newest version's batch",
  ({ training }) => Object.entries(training?.staleness ?? {}).map(([lag, value]) => [`${lag} behind`, value]),
  "No version was trained yet.",
);
const verdicts = shareBars("Judgements", ({ judging }) => ["success", "failure", "excluded", "error"].map((verdict) => [verdict, judging?.verdicts[verdict] ?? 0]), "Nothing was judged yet.");
const pages = outcomeTable("Success by page or site", "pages", "page or site");
const byVersion = outcomeTable("Success by version", "versions", "version");
const workers = workerTable();
const queues = queueTable();
const streams = streamTable();

const card = (name, ...children) => h("section", { class: "card", "aria-label": name }, h("h2", {}, name), children);
show(
  main,
  h("h1", { class: "sr" }, "Live"),
  news,
  reading,
  alerts.element,
  metrics.element,
  h(
    "div",
    { class: "live" },
    h(
      "div",
      { class: "column" },
      h(
        "section",
        { class: "card", "aria-label": "Episodes" },
        h("div", { class: "above" }, filters.legend, filters.fields),
        cells.told,
        cells.element,
        counted,
      ),
      h("div", { class: "pair" }, card("Success", curve.element), card("Staleness", staleness.element, h("h2", {}, "Judgements"), verdicts.element)),
      h("div", { class: "pair" }, card("Success by page or site", pages.element), card("Success by version", byVersion.element)),
      card("Workers", workers.element),
      h("div", { class: "pair" }, card("Queues", queues.element), card("Streams", streams.element)),
    ),
    panel.element,
  ),
);

function remember() {
  history.replaceState(null, "", parameters.size ? `?${parameters}` : location.pathname);
}

function open(episode) {
  parameters.set("episode", episode);
  remember();
  panel.open(episode, run);
}

function close() {
  parameters.delete("episode");
  remember();
  panel.close();
  cells.focus();
}

function filtered() {
  remember();
  cells.redraw();
  count();
}

function count() {
  const { shown, cells: all } = cells.num();
  const phases = Object.values(run.sections.phases ?? {}).reduce((sum, number) => sum + number, 0);
  const parts = [];
  if (shown < all) parts.push(`${whole(shown)} of ${whole(all)} shown`);
  if (phases > all) parts.push(`${whole(phases - all)} more are queued`);
  if (run.sections.episodes_not_kept) parts.push(`${whole(run.sections.episodes_not_kept)} were not kept one by one`);
  if (!phases) parts.push("No episode is live.");
  counted.textContent = parts.join(" · ");
}

const run = followRun({
  updated(_, change) {
    const { sections } = run;
    const at = run.now();
    reading.hidden = run.missing.length === 0;
    reading.textContent = `Reading ${run.missing.join(", ")} …`;
    alerts.update(run, at);
    if (change.sections.metrics || change.sections.training || change.sections.judging) metrics.update(run);
    filters.update(run);
    cells.update(change, at);
    count();
    panel.update(run, change);
    if (change.sections.training) {
      curve.update(run);
      staleness.update(run);
    }
    if (change.sections.judging) verdicts.update(run);
    if (change.sections.outcomes) {
      pages.update(run);
      byVersion.update(run);
    }
    workers.update(run);
    if (change.sections.queues) queues.update(run);
    if (change.sections.streams || change.sections.store || change.sections.disk) streams.update(run);
    const raised = sections.alerts?.length ?? 0;
    document.title = raised ? `(${raised}) ${title}` : title;
    if (panel.episode === null && parameters.has("episode")) open(parameters.get("episode"));
  },
  aged(seconds) {
    news.hidden = seconds === null;
    main.classList.toggle("old", seconds !== null);
    if (seconds !== null)
      news.textContent = `No news for ${Math.round(seconds)} s: what is shown is old. Is \`millrace monitor --web\` still running? Asking again …`;
    const now = run.now();
    alerts.tick(now);
    cells.tick(now);
    panel.tick(now);
  },
});

bindKeys([
  { keys: ["e"], does: "to the episodes; arrows walk, Enter opens one", run: () => cells.focus() },
  { keys: ["Escape", "x"], does: "close the episode", run: () => panel.episode && close() },
  { keys: ["w"], does: "to the workers", run: () => main.querySelector("[aria-label=Workers]").scrollIntoView() },
  { keys: ["u"], does: "back to the top", run: () => scrollTo(0, 0) },
]);
