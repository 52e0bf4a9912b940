// Called on the node at a point. Chooses the option with this label or value as a user would; returns why it cannot, in at most
// `most` characters, or "".
function (wanted, most) {
  const element = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement;
  let select = element?.closest("select");
  if (!select) {
    const labelled = element?.closest("label")?.control;
    if (labelled?.tagName === "SELECT") select = labelled;
  }
  if (!select) return "there is no native select at that place: click what is there, then click the option";
  if (select.matches(":disabled")) return "the select at that place is disabled";
  const cut = (text, length) => text.slice(0, length).replace(/[\ud800-\udbff]$/, "").toWellFormed();
  const plain = (text) => text.replace(/\s+/g, " ").trim();
  const options = [...select.options];
  const name = plain(wanted);
  const option =
    options.find((each) => plain(each.label) === name) ??
    options.find((each) => each.value === wanted) ??
    options.find((each) => plain(each.label).toLowerCase() === name.toLowerCase());
  if (!option) {
    const labels = options.slice(0, 60).map((each) => JSON.stringify(cut(plain(each.label), most)));
    const rest = options.length - labels.length;
    const there = `${labels.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
    return cut(`the select has no option ${JSON.stringify(cut(name, 200))}; it has ${there}`, most);
  }
  if (option.matches(":disabled")) return `the option ${JSON.stringify(cut(plain(option.label), 200))} is disabled`;
  select.focus();
  if (option.selected) return "";
  option.selected = true;
  select.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  select.dispatchEvent(new Event("change", { bubbles: true }));
  return "";
}
