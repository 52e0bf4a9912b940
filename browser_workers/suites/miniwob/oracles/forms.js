// Oracles of pages that are filled in.
"use strict";
{
  const { one, all, text, shown, named, quoted, ordinal, click, type, select, fill, tick, wait } = window.millraceSteps;
  const oracles = window.millraceOracles;
  const submit = () => one("#subbtn") || named("#area button", "Submit");
  const answer = (value) => fill([[one("#area input[type=text]"), String(value)]], submit());
  const listed = (asked, verb) => asked.match(new RegExp(`${verb} (.*?)(?: from.*)? and click Submit`))[1].split(", ");

  oracles["enter-text"] = (asked) => answer(quoted(asked)[0]);
  oracles["enter-text-dynamic"] = oracles["enter-text"];
  oracles["enter-text-2"] = (asked) => {
    const [name] = quoted(asked);
    return answer(/upper/.test(asked) ? name.toUpperCase() : name.toLowerCase());
  };
  oracles["enter-password"] = (asked) => {
    const [password] = quoted(asked);
    return fill([[one("#password"), password], [one("#verify"), password]], submit());
  };
  oracles["login-user"] = (asked) => {
    const [name, password] = quoted(asked);
    return fill([[one("#username"), name], [one("#password"), password]], submit());
  };
  oracles["login-user-popup"] = (asked) => (one("#popup-cancel") ? click(one("#popup-cancel")) : oracles["login-user"](asked));
  oracles["focus-text"] = () => click(one("#tt"));
  oracles["focus-text-2"] = (asked) => click(one(`#tt${ordinal(asked)}`));
  oracles["text-transform"] = () => answer(text(one("#captcha")));
  oracles["copy-paste"] = () => fill([[one("#answer-input"), one("#to-copy").value]], submit());
  oracles["copy-paste-2"] = (asked) => fill([[one("#answer-input"), one(`#text-${ordinal(asked)}`).value]], submit());
  oracles["find-word"] = (asked) => answer(text(one("#area p")).split(" ")[ordinal(asked) - 1].replace(/[^a-zA-Z]/g, ""));
  oracles["simple-arithmetic"] = () => {
    const [, a, sign, b] = text(one("#math-problem")).match(/(\d+) (.) (\d+)/);
    return answer({ "+": Number(a) + Number(b), "-": a - b, x: a * b }[sign]);
  };
  oracles["simple-algebra"] = () => {
    const [, left, sign, right, sum] = text(one("#math-problem")).match(/(\w+) (.) (\w+) = (-?\d+)/);
    if (left === "x") return answer(sign === "+" ? sum - right : Number(sum) + Number(right));
    return answer(sign === "+" ? sum - left : left - sum);
  };
  oracles["visual-addition"] = () => answer(all(".addition-block").length);

  const cells = () => new Map(all("#tab tr").map((row) => all("td", row).map((cell) => cell.textContent)));
  oracles["read-table"] = (asked) => answer(cells().get(asked.match(/value of (.*) into/)[1]));
  oracles["read-table-2"] = () => {
    const fields = ["1", "2"].map((n) => [one(`#tt${n}`), cells().get(one(`#ll${n}`).dataset.key)]);
    return fill(fields, submit());
  };
  oracles["guess-number"] = () => {
    const field = one("#tt"), tried = field.value;
    const [higher, lower] = ["#higher", "#lower"].map((each) => (shown(one(each)) ? Number(one(`${each} span`).textContent) : null));
    const guess = higher !== null ? higher + 1 : lower !== null ? lower - 1 : 5;
    return tried === String(guess) ? click(submit()) : type(field, String(guess));
  };
  oracles["multi-orderings"] = (asked) => {
    const [, Genre, Director, Year] = asked.match(/for (.*) movies directed by (.*) from year (\d+)/);
    const wanted = Object.entries({ Genre, Director, Year });
    const field = (name) => one("input", named("#area tr", name));
    return fill(wanted.map(([name, value]) => [field(name), value]), one("#area .final"));
  };

  const label = (box) => text(box.closest("label"));
  oracles["click-checkboxes"] = (asked) => {
    const names = new Set(listed(asked, "Select"));
    return tick(all("#area label input"), (box) => names.has(label(box)), submit());
  };
  oracles["click-checkboxes-large"] = oracles["click-checkboxes-transfer"] = oracles["click-checkboxes"];
  oracles["click-option"] = (asked) => {
    const [name] = listed(asked, "Select");
    const box = all("#boxes input").find((each) => label(each) === name);
    return click(box.checked ? submit() : box);
  };
  oracles["form-sequence-2"] = (asked) => {
    const [radio, field] = [...asked.matchAll(/(\d)(?:st|nd|rd)/g)].map((found) => found[1]);
    const button = one(`#area input[value="${radio}"]`);
    return button.checked ? fill([[one(`#input-${field}`), quoted(asked)[0]]], submit()) : click(button);
  };
  oracles["choose-list"] = (asked) => {
    const [name] = listed(asked, "Select"), list = one("#options");
    return list.selectedOptions[0].text === name ? click(submit()) : select(list, name);
  };
  oracles["use-spinner"] = (asked) => {
    const wanted = Number(asked.match(/-?\d+/)), value = Number(one("#spinner").value);
    return click(value === wanted ? submit() : one(value < wanted ? ".ui-spinner-up" : ".ui-spinner-down"));
  };
  oracles["use-autocomplete-nodelay"] = (asked) => {
    const [start, end] = quoted(asked);
    const fits = (item) => text(item).startsWith(start) && text(item).endsWith(end || "");
    const field = one("#tags"), item = all(".ui-menu-item").find((each) => shown(each) && fits(each));
    if (field.value.startsWith(start) && field.value.length > start.length) return click(submit());
    return item ? click(item) : field.value === start ? wait(0.5) : type(field, start);
  };
  oracles["use-autocomplete"] = oracles["use-autocomplete-nodelay"];
}
