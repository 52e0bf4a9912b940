// Runs behind the package's core.js, ahead of everything else in a page: the page's one problem is drawn from ?seed=N alone,
// begins by itself, and stays as it is left when it ends. ?limit_s=N keeps a time limit, after which the page ends with -1.
"use strict";
(() => {
  const LONGEST_TIMER_MS = 2 ** 31 - 1;
  const parameters = new URLSearchParams(location.search);
  const seed = parameters.get("seed") || "0";
  const limitS = Number(parameters.get("limit_s"));

  // Calendars show today: every episode begins at the same moment.
  const RealDate = Date;
  const start = new RealDate(2026, 0, 15, 12).getTime() - performance.now();
  const now = () => Math.floor(start + performance.now());
  window.Date = new Proxy(RealDate, {
    construct: (target, given, made) => Reflect.construct(target, given.length ? given : [now()], made),
    apply: () => new RealDate(now()).toString(),
    get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
  });

  // Its scores, its clock and its record of clicks stand beside the page and are not part of it.
  const style = document.createElement("style");
  style.textContent = "#reward-display, #click-canvas { display: none; }";
  document.head.append(style);
  core.countdownTimer = () => {};

  let begun = false;
  core.startEpisode = () => {
    // The package asks for the next problem at the end of every problem.
    if (begun) return;
    begun = true;
    core.createDisplay();
    core.cover_div = document.createElement("div");
    core.EPISODE_MAX_TIME = limitS > 0 ? limitS * 1000 : LONGEST_TIMER_MS;
    Math.seedrandom(seed);
    core.startEpisodeReal();
  };
  Math.seedrandom(seed);

  const utterance = () => {
    const said = core.getUtterance();
    const text = typeof said === "string" ? said : said.utterance;
    if (!location.pathname.startsWith("/flight/")) return text;
    const wanted = Object.entries(JSON.parse(text)).map(([name, value]) => `${name}: ${value}`);
    return `Book a flight with these details. ${wanted.join("; ")}.`;
  };

  // Whether the page is content when its button is pressed with nothing done.
  const contentAtOnce = () => {
    const button = [...document.querySelectorAll("#area button")].find((each) => each.textContent.trim() === "Submit");
    button?.click();
    return WOB_DONE_GLOBAL && WOB_RAW_REWARD_GLOBAL > 0;
  };

  // What the page would ask for under each of some seeds, and where that is tried, whether nothing has to be done for it; it is
  // of no other use afterwards.
  window.millraceProblems = (seeds, tried) => seeds.map((each) => {
    Math.seedrandom(String(each));
    core.startEpisodeReal();
    return [utterance(), tried && contentAtOnce()];
  });

  // Left unfinished, a page is worth what its own time limit would have given.
  window.millrace = () => ({
    done: WOB_DONE_GLOBAL,
    reward: WOB_DONE_GLOBAL ? Number(WOB_RAW_REWARD_GLOBAL) || 0 : -1,
    utterance: core.ept0 === null ? "" : utterance(),
    ...(WOB_DONE_GLOBAL ? {} : window.millraceOracle?.()),
  });
})();
