// Oracles of pages where it is enough to click the right things.
"use strict";
{
  const { one, all, text, shown, named, quoted, ordinal, click, type } = window.millraceSteps;
  const oracles = window.millraceOracles;
  const colourOf = (asked) => asked.match(/(?:the|shades of) (\w+)(?= colored| and)/)[1];

  oracles["click-test"] = () => click(one("#subbtn"));
  oracles["click-test-2"] = (asked) => click(named("#area button", asked.match(/ONE|TWO/)[0]));
  oracles["click-test-transfer"] = oracles["click-test-2"];
  oracles["click-button"] = (asked) => click(named("#area button", quoted(asked)[0]));
  oracles["unicode-test"] = oracles["click-button"];
  oracles["click-button-sequence"] = () => click(one(buttonsPushed.length ? "#subbtn2" : "#subbtn"));
  oracles["click-link"] = (asked) => click(named("#area .alink", quoted(asked)[0]));
  oracles["click-dialog"] = () => click(one(".ui-dialog button"));
  oracles["click-dialog-2"] = (asked) => {
    const [name] = quoted(asked);
    return click(name === "x" ? one(".ui-dialog-titlebar button") : named(".ui-dialog-buttonset button", name));
  };
  oracles["click-tab"] = (asked) => click(named("#area ul a", asked.match(/Tab #\d/)[0]));

  /** A link in one of several panels: its panel's handle is clicked until the link is to be seen. */
  const unfold = (asked, panels, handleOf) => {
    const link = all("#area .alink").find((each) => text(each) === quoted(asked)[0]);
    if (link && shown(link)) return click(link);
    return click(handleOf(panels.find((panel) => panel.contains(link))));
  };
  oracles["click-tab-2"] = (asked) => unfold(asked, all("#area > div"), (panel) => one(`#area a[href="#${panel.id}"]`));
  oracles["click-tab-2-easy"] = oracles["click-tab-2-hard"] = oracles["click-tab-2"];
  oracles["click-tab-2-medium"] = (asked) => {
    // The second panel is empty: what is not in the first is taken for found by its tab.
    const link = all("#area .alink").find((each) => text(each) === quoted(asked)[0]);
    return click(link || one('#area a[href="#tabs-2"]'));
  };
  oracles["click-collapsible-2-nodelay"] = (asked) =>
    unfold(asked, all("#area .ui-accordion-content"), (panel) => panel.previousElementSibling);
  oracles["click-collapsible-2"] = oracles["click-collapsible-2-nodelay"];
  oracles["click-collapsible-nodelay"] = () =>
    click(shown(one("#area .ui-accordion-content")) ? one("#subbtn") : one("#area .ui-accordion-header"));
  oracles["click-collapsible"] = oracles["click-collapsible-nodelay"];

  oracles["click-color"] = (asked) => click(one(`#area [data-color="${colourOf(asked)}"]`));
  oracles["click-shades"] = (asked) => {
    const shades = all(`#area [data-color="${colourOf(asked)}"]`);
    return click(shades.find((each) => !each.classList.contains("selected")) || one("#submit"));
  };
  oracles["click-widget"] = (asked) => click(one(`#area [data-type="${quoted(asked)[0]}"]`));
  oracles["grid-coordinate"] = (asked) => click(document.getElementById(asked.match(/\(.*\)/)[0]));
  oracles["identify-shape"] = () => {
    const shape = one("#area_svg > *");
    const drawn = { circle: "circle", rect: "rectangle", polygon: "triangle" }[shape.tagName];
    return click(one(`button[data-type="${drawn || (/\d/.test(text(shape)) ? "digit" : "letter")}"]`));
  };
  oracles["ascending-numbers"] = () => {
    const numbers = all("#area text").sort((a, b) => Number(text(a)) - Number(text(b)));
    return click(numbers[0] || one("#area rect"));
  };
  oracles["find-greatest"] = () => {
    const cards = all("#cardholder [data-index]");
    const greatest = cards.reduce((best, card) => (Number(text(card)) > Number(text(best)) ? card : best));
    return click(greatest.classList.contains("hidden") ? greatest : one("#submit"));
  };
  oracles["odd-or-even"] = () => {
    const wanted = all(".row").map((row) => one(Number(text(one(".display-number", row))) % 2 ? ".odd" : ".even", row));
    return click(wanted.find((button) => !button.classList.contains("selected")) || one("#submit"));
  };
  oracles["generate-number"] = (asked) => {
    const number = Number(text(one("#display-number")) || NaN);
    const bound = Number(asked.match(/\d+/));
    const right = /less/.test(asked) ? number < bound : /greater/.test(asked) ? number > bound : number % 2 === Number(/odd/.test(asked));
    return click(one(right ? "#submit" : "#generate"));
  };
  oracles["navigate-tree"] = (asked) => {
    const files = all("#tree span").filter((each) => text(each) === quoted(asked)[0]);
    const file = files.find(shown) || files[0];
    if (shown(file)) return click(file);
    let folder = file.parentElement;
    while (!shown(folder)) folder = folder.parentElement.closest("li");
    return click(one(".hitarea", folder));
  };
  oracles["buy-ticket"] = (asked) => {
    const by = /cost/.test(asked) ? ".buy-ticket" : ".time-duration";
    const value = (ticket) => Number(Object.values(one(by, ticket).dataset)[0]);
    const tickets = all(".flight").sort((a, b) => value(a) - value(b));
    return click(one(".buy-ticket", /cheapest|shortest/.test(asked) ? tickets[0] : tickets.at(-1)));
  };
  oracles["search-engine"] = (asked) => {
    const [name] = quoted(asked), index = ordinal(asked) - 1;
    if (one("#search-text").value !== name) return type(one("#search-text"), name);
    const result = one(`[data-result="${index}"]`);
    if (!one("[data-result]")) return click(one("#search"));
    return click(result || named("#pagination a", String(Math.floor(index / 3) + 1)));
  };
}
