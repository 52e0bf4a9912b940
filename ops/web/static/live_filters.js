// Which cells are shown: phases by their legend, split, site and worker. What is asked for stands in the address.

import { h, show } from "./dom.js";
import { whole } from "./format.js";
import { PHASES, SLOW_S, isSlow } from "./live_marks.js";

const FIELDS = [
  ["split", "split", (cell) => [cell.split]],
  ["site", "site", (cell) => [cell.site]],
  ["worker", "worker", (cell) => [cell.worker, cell.policy]],
];

export function cellFilters(parameters, changed) {
  const phases = new Set(parameters.getAll("phase"));
  const counts = {};
  const selects = {};

  const toggle = (name, letter, title) => {
    counts[name] = h("b", {}, "0");
    const button = h(
      "button",
      {
        type: "button",
        class: "key-of",
        title,
        "aria-pressed": String(phases.has(name)),
        onclick: () => {
          if (!phases.delete(name)) phases.add(name);
          button.setAttribute("aria-pressed", String(phases.has(name)));
          store();
        },
      },
      h("span", { class: `cell ${name}`, "aria-hidden": "true" }, letter),
      h("span", {}, name),
      counts[name],
    );
    return button;
  };
  const legend = h(
    "div",
    { class: "legend-of-cells", role: "group", "aria-label": "Phases" },
    PHASES.map(([name, letter, title]) => toggle(name, letter, title)),
    toggle("slow", "D", `played, and at the same phase for more than ${SLOW_S} s`),
  );
  const fields = FIELDS.map(([name, label]) => {
    selects[name] = h("select", { name, onchange: store });
    offer(name, []);
    return h("label", { class: "field" }, h("span", {}, label), selects[name]);
  });
  const clear = h("button", { type: "button", class: "quiet", onclick: reset }, "Show all");

  function store() {
    parameters.delete("phase");
    for (const phase of phases) parameters.append("phase", phase);
    for (const [name] of FIELDS) {
      if (selects[name].value) parameters.set(name, selects[name].value);
      else parameters.delete(name);
    }
    told();
    changed();
  }

  function reset() {
    phases.clear();
    for (const [name] of FIELDS) selects[name].value = "";
    for (const button of legend.children) button.setAttribute("aria-pressed", "false");
    store();
  }

  function told() {
    clear.hidden = !active();
  }

  const active = () => phases.size > 0 || FIELDS.some(([name]) => selects[name].value);

  function offer(name, values) {
    const select = selects[name];
    const wanted = select.options.length ? select.value : (parameters.get(name) ?? "");
    const all = ["", ...new Set([...values, ...(wanted ? [wanted] : [])])].sort();
    if (all.join("\n") === [...select.options].map((option) => option.value).join("\n")) return;
    show(
      select,
      all.map((value) => h("option", { value, selected: value === wanted }, value || "any")),
    );
  }

  told();
  return {
    legend,
    fields: h("div", { class: "row" }, fields, clear),
    active,
    matches(cell, now) {
      if (phases.size && !phases.has(cell.phase) && !(phases.has("slow") && isSlow(cell, now))) return false;
      return FIELDS.every(([name, , values]) => !selects[name].value || values(cell).includes(selects[name].value));
    },
    update(run) {
      const cells = [...run.cells.values()];
      for (const [name] of PHASES) counts[name].textContent = whole(run.sections.phases?.[name] ?? 0);
      counts.slow.textContent = whole(cells.filter((cell) => isSlow(cell, run.now())).length);
      for (const [name, , values] of FIELDS) offer(name, [...new Set(cells.flatMap(values))].filter(Boolean));
    },
  };
}
