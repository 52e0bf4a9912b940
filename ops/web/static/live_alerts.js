// What somebody should look at, most severe first, each with what to do.

import { h, show } from "./dom.js";
import { age } from "./format.js";

const TONES = { critical: "bad", warning: "other", note: "none" };

export function alertList() {
  const element = h("section", { class: "alerts", "aria-label": "Alerts", "aria-live": "polite" });
  const ages = new Map();
  let drawn = null;

  return {
    element,
    update({ sections }, at) {
      const alerts = sections.alerts ?? [];
      const key = JSON.stringify(alerts);
      if (key !== drawn) {
        drawn = key;
        ages.clear();
        show(element, alerts.length ? alerts.map(row) : h("p", { class: "calm" }, "No alerts."));
      }
      this.tick(at);
    },
    tick(at) {
      for (const [word, since] of ages) word.textContent = `for ${age(at - since)}`;
    },
  };

  function row(alert) {
    const since = h("span", { class: "soft", "aria-live": "off" }, "");
    ages.set(since, alert.since);
    return h(
      "article",
      { class: `alert ${alert.severity}` },
      h(
        "p",
        {},
        h("span", { class: `pill ${TONES[alert.severity] ?? "other"}` }, alert.severity),
        " ",
        h("b", {}, alert.sentence),
        " ",
        since,
      ),
      h("p", {}, alert.remedy, " ", h("code", {}, alert.page)),
    );
  }
}
