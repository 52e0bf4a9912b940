// The filters of the list: each is a parameter of the address.

import { h, show } from "./dom.js";
import { whole, words } from "./format.js";

const CHOSEN = [
  ["verdict", "Verdict"],
  ["outcome", "Outcome"],
  ["site", "Site"],
  ["split", "Split"],
  ["difficulty", "Difficulty"],
  ["worker", "Worker"],
];
const TYPED = [
  ["min_reward", "Reward from", "0"],
  ["max_reward", "to", "1"],
  ["version", "Version", "3-7"],
];
const LINKED = ["task", "group"];
const PAUSE_MS = 200;

/** `changed` is called when `parameters` are others. */
export function filterBar(parameters, changed) {
  let pause = null;
  const set = (name, value) => {
    if (value === (parameters.get(name) ?? "")) return;
    if (value) parameters.set(name, value);
    else parameters.delete(name);
    changed();
    offerClear();
  };
  const typed = (name, attributes) => {
    const field = h("input", {
      name,
      value: parameters.get(name),
      autocomplete: "off",
      spellcheck: "false",
      ...attributes,
    });
    field.addEventListener("input", () => {
      clearTimeout(pause);
      pause = setTimeout(() => set(name, field.value.trim()), PAUSE_MS);
    });
    return field;
  };
  const search = typed("q", {
    type: "search",
    placeholder: "Search task, answer or address",
    "aria-label": "Search task, answer or address",
  });
  const selects = CHOSEN.map(([name, title]) => [
    name,
    title,
    h("select", { name, onchange: (event) => set(name, event.target.value) }),
  ]);
  const rubric = h("select", { name: "rubric", onchange: (event) => set("rubric", event.target.value) });
  const rubricField = field("Judged by", rubric);
  const fields = TYPED.map(([name, title, example]) => field(title, typed(name, { placeholder: example, size: 6 })));
  const clear = h("button", { type: "button", class: "quiet" }, "Clear");
  const linked = h("span", { class: "linked" });
  clear.addEventListener("click", () => {
    for (const name of [...parameters.keys()]) parameters.delete(name);
    for (const each of element.querySelectorAll("input, select")) each.value = "";
    changed();
    offerClear();
  });
  // On a narrow window they would push the list itself out of sight.
  const more = h(
    "details",
    { open: matchMedia("(min-width: 721px)").matches },
    h("summary", {}, "Filters"),
    h(
      "div",
      { class: "row" },
      selects.map(([, title, select]) => field(title, select)),
      fields,
      rubricField,
      linked,
      clear,
    ),
  );
  const element = h(
    "form",
    { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    search,
    more,
  );

  function offerClear() {
    const names = [...parameters.keys()].filter((name) => name !== "sort" && name !== "page");
    clear.hidden = names.length === 0;
    show(
      linked,
      LINKED.filter((name) => parameters.get(name)).map((name) =>
        h("span", { class: "tag" }, `${name}: ${parameters.get(name)}`),
      ),
    );
  }

  /** Fills the choices with what there is, without closing a list that is open. */
  function offer({ choices, rubrics, rubric: counting }) {
    for (const [name, , select] of selects) {
      if (document.activeElement === select) continue;
      fill(
        select,
        [["", "any"], ...choices[name].map(({ value, count }) => [value, `${words(value)} (${whole(count)})`])],
        parameters.get(name) ?? "",
      );
    }
    rubricField.hidden = rubrics.length < 2;
    fill(
      rubric,
      rubrics.map((name) => [name, name]),
      counting,
    );
    offerClear();
  }
  offerClear();
  return {
    element,
    offer,
    focus: () => {
      search.focus();
      search.select();
    },
  };
}

function fill(select, options, value) {
  const known = options.some(([each]) => each === value) ? options : [...options, [value, value]];
  const wanted = JSON.stringify(known);
  if (select.dataset.options !== wanted) {
    select.dataset.options = wanted;
    show(
      select,
      known.map(([each, text]) => h("option", { value: each }, text)),
    );
  }
  select.value = value;
}

function field(title, input) {
  return h("label", { class: "field" }, h("span", {}, title), input);
}
