// One episode while it runs: its newest page with the newest action drawn in. Follows until it is closed.

import { ask } from "./api.js";
import { facts, h, pill, show, verdictPill } from "./dom.js";
import { age, words, worth } from "./format.js";
import { kind, phaseText } from "./live_marks.js";
import { shot } from "./overlay.js";

export function episodePanel({ closed }) {
  let episode = null;
  let cell = null;
  let last = null;
  let asking = false;
  let stale = false;
  let drawn = "";
  const head = h("div", { class: "head" });
  const since = h("span", {}, "");
  const stage = h("div", { class: "stage" });
  const said = h("div", { class: "said" });
  const about = h("div", {});
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Close the episode", onclick: closed }, "✕");
  const element = h(
    "aside",
    { class: "card one", "aria-label": "Episode", hidden: true },
    h("div", { class: "top" }, head, close),
    problem,
    stage,
    said,
    about,
  );

  /** Asks anew when something changed, one request at a time. */
  async function look() {
    stale = true;
    if (asking) return;
    asking = true;
    while (stale && episode !== null) {
      stale = false;
      const mine = episode;
      try {
        const found = await ask(`/api/live/episodes/${encodeURIComponent(mine)}`);
        if (mine === episode) draw(found);
      } catch (error) {
        if (mine === episode) complain(error.message);
      }
    }
    asking = false;
  }

  function complain(sentence) {
    problem.hidden = !sentence;
    problem.textContent = sentence;
  }

  async function draw(found) {
    last = found;
    complain("");
    drawHead();
    drawSaid();
    const { now } = found;
    const key = JSON.stringify([now?.page?.screenshot?.url, now?.answer?.action]);
    if (key === drawn) return;
    drawn = key;
    if (!now) {
      show(stage, h("p", { class: "wait" }, "Nothing was seen yet."));
      return;
    }
    if (now.page?.screenshot) stage.style.setProperty("--tallest", now.page.screenshot.width / now.page.screenshot.height);
    const figure = shot(now, { name: `What the policy sees at step ${now.step + 1}` });
    // The screenshot before stays until this one can be shown.
    await figure.querySelector("img")?.decode().catch(() => {});
    if (drawn === key) show(stage, figure);
  }

  function drawHead() {
    const outcome = cell?.outcome ?? last?.outcome;
    const isOver = Boolean(outcome);
    show(
      head,
      h("h2", {}, last?.task.instruction ?? episode),
      h(
        "p",
        { class: "about" },
        cell ? h("span", { class: `cell ${kind(cell)}`, "aria-hidden": "true" }, "") : null,
        cell ? h("b", {}, phaseText(cell)) : h("b", {}, isOver ? "ended" : "not among the live episodes"),
        " ",
        since,
        isOver ? [" ", pill(words(outcome), "none")] : null,
        cell?.verdict ? [" ", verdictPill(cell)] : null,
        cell?.reward !== null && cell?.reward !== undefined
          ? h("b", { class: "reward" }, `reward ${worth(cell.reward)}`)
          : null,
      ),
      isOver ? h("p", {}, h("a", { href: `/episodes/${episode}` }, "Every step of this episode")) : null,
    );
  }

  function drawSaid() {
    const { now, before, task, attempt } = last;
    const answer = now?.answer ?? before;
    show(
      said,
      answer
        ? h(
            "p",
            { class: "caption" },
            now?.answer ? null : h("span", { class: "soft" }, "before this page: "),
            h("b", {}, answer.words),
            answer.parsed ? null : [" ", pill("not parsed", "failed")],
          )
        : null,
      now?.page ? h("p", { class: "url" }, `${now.page.title} — ${now.page.url}`) : null,
      now?.page ? now.page.errors.map((error) => h("p", { class: "problem" }, error)) : null,
      answer?.thought ? h("p", {}, answer.thought) : null,
      answer?.response
        ? h("details", {}, h("summary", {}, "What the policy said"), h("pre", {}, answer.response))
        : null,
    );
    show(
      about,
      facts([
        ["episode", episode],
        ["task", task.task],
        ["site", task.website],
        ["split", task.split],
        ["difficulty", task.difficulty],
        ["step", now ? `${now.step + 1}${task.max_steps ? ` of ${task.max_steps}` : ""}` : null],
        ["attempt", attempt || null],
        ["browser worker", cell?.worker],
        ["policy worker", answer?.worker || cell?.policy],
        ["admitted at version", cell?.version],
      ]),
    );
  }

  return {
    element,
    get episode() {
      return episode;
    },
    open(name, run) {
      [episode, cell, last, drawn] = [name, run.cells.get(name) ?? null, null, ""];
      element.hidden = false;
      show(stage, h("p", { class: "wait" }, "Reading …"));
      show(said);
      show(about);
      complain("");
      drawHead();
      this.tick(run.now());
      look();
    },
    close() {
      episode = null;
      element.hidden = true;
    },
    update(run, { cells, gone }) {
      if (episode === null) return;
      if (gone.includes(episode)) since.textContent = "";
      else if (episode in cells) {
        cell = run.cells.get(episode);
        if (last) drawHead();
        look();
      }
    },
    tick(now) {
      since.textContent = cell && cell.phase !== "ended" ? `for ${age(now - cell.since)}` : "";
    },
  };
}
