// Oracles of pages with widgets: calendars, clocks, sliders, texts that scroll.
"use strict";
{
  const { one, all, text, shown, named, quoted, ordinal, click, fill, tick, press, scroll } = window.millraceSteps;
  const oracles = window.millraceOracles;

  oracles["choose-date"] = (asked) => {
    const [, month, day, year] = asked.match(/(\d+)\/(\d+)\/(\d+)/).map(Number);
    const field = one("#datepicker");
    if (field.value) return click(one("#subbtn"));
    if (!shown(one("#ui-datepicker-div"))) return click(field);
    const cell = one("#ui-datepicker-div td[data-month]");
    const ahead = (year - cell.dataset.year) * 12 + month - 1 - cell.dataset.month;
    return click(ahead ? one(ahead > 0 ? ".ui-datepicker-next" : ".ui-datepicker-prev") : named(".ui-datepicker td a", String(day)));
  };
  for (const kind of ["easy", "medium", "nodelay"]) oracles[`choose-date-${kind}`] = oracles["choose-date"];

  /** A field of several parts is reached by Tab, which begins at its first part. */
  const keyed = (keys) => {
    if (one("#tt").value) return click(one("#subbtn"));
    return press("Tab", ...keys);
  };
  oracles["enter-date"] = (asked) => keyed(asked.match(/(\d+)\/(\d+)\/(\d+)/).slice(1).join(""));
  oracles["enter-time"] = (asked) => {
    const [, hour, minute, half] = asked.match(/(\d+):(\d+)\s*([AP])M/);
    return keyed(hour.padStart(2, "0") + minute + half.toLowerCase());
  };

  /** One step towards a slider's value; nothing when it is there. */
  const slide = (handle, value, wanted) => {
    if (value === wanted) return undefined;
    if (document.activeElement !== handle) return click(handle);
    return press(...Array(Math.min(20, Math.abs(wanted - value))).fill(value < wanted ? "ArrowRight" : "ArrowLeft"));
  };
  const slideOne = (slider, output, wanted) => slide(one(".ui-slider-handle", one(slider)), Number(text(one(output))), wanted);
  oracles["use-slider"] = (asked) => slideOne("#slider", "#val", Number(asked.match(/-?\d+/))) || click(one("#subbtn"));
  oracles["use-slider-2"] = (asked) => {
    const steps = JSON.parse(asked.match(/\[.*\]/)).map((wanted, n) => slideOne(`#slider-${n + 1}`, `#val-${n + 1}`, wanted));
    return steps.find(Boolean) || click(one("#subbtn"));
  };
  oracles["form-sequence"] = (asked) => {
    const box = one(`#checkbox-${ordinal(asked)}`);
    return slideOne("#slider", "#val", Number(asked.match(/-?\d+/))) || click(box.checked ? one("#subbtn") : box);
  };
  oracles["form-sequence-3"] = (asked) => {
    const wanted = asked.match(/Choose (.*) from/)[1];
    if (one("#dropdown").value === wanted) return click(named("#buttons button", quoted(asked)[0]));
    const item = all(".selectric-items li").find((each) => text(each) === wanted);
    return click(item && shown(item) ? item : one(".selectric"));
  };

  const atBottom = (area) => area.scrollTop + area.clientHeight >= area.scrollHeight - 1;
  oracles["scroll-text"] = () => {
    const last = one("#text-area").value.trim().split(/\s/).at(-1).replace(/[^a-zA-Z0-9]/g, "");
    return atBottom(one("#text-area")) ? fill([[one("#answer-input"), last]], one("#subbtn")) : scroll(one("#text-area"), "down");
  };
  oracles["scroll-text-2"] = (asked) => {
    const area = one("#text-area"), down = /bottom/.test(asked);
    return (down ? atBottom(area) : area.scrollTop === 0) ? click(one("#subbtn")) : scroll(area, down ? "down" : "up");
  };
  oracles["sign-agreement"] = (asked) => {
    const [name, button] = quoted(asked);
    if (!name) return click(one("#cancel"));
    if (one("#name").disabled) return scroll(one("#text-area"), "down");
    return fill([[one("#name"), name]], one(button === "Agree" ? "#agree" : "#cancel"));
  };

  oracles["number-checkboxes"] = (asked) => {
    const wanted = PATTERNS[Number(quoted(asked)[0])].flat();
    const boxes = all("#checkboxes input");
    return tick(boxes, (box) => wanted[boxes.indexOf(box)] === 1, one("#subbtn"));
  };
  oracles["click-checkboxes-soft"] = (asked) => {
    const names = asked.match(/similar to (.*) and click/)[1].split(", ");
    const like = (word) => SYNONYMS.some((group) => group.includes(word) && names.some((name) => group.includes(name)));
    return tick(all("#boxes input"), (box) => like(text(box.closest("label"))), one("#subbtn"));
  };
  oracles["click-menu-2"] = (asked) => {
    const icon = one("#query .ui-icon"), items = all("#menu li").filter((each) => !one("ul", each));
    const item = icon ? items.find((each) => one(`.${icon.classList[1]}`, each)) : items.find((each) => text(each) === quoted(asked)[1]);
    if (!shown(one("#menu"))) return click(one("#open-menu"));
    return click(one("div", shown(item) ? item : item.closest("ul").parentElement));
  };
  oracles["multi-layouts"] = (asked) => {
    const [, genre, director, year] = asked.match(/for (.*) movies directed by (.*) from year (\d+)/);
    const wanted = [[/Genre/, genre], [/Director/, director], [/Year|Date/, year]];
    const row = (name) => all("#area p, #area .row, #area tr, #area .field, #area .ui-entry").find((each) => name.test(text(each)));
    return fill(wanted.map(([name, value]) => [one("input", row(name)), value]), one("#area button, #area .final, #area .ui-submit"));
  };
}
