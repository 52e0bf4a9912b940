// The bar in which a person says whether an episode is a success, and which one comes next.

import { ask } from "./api.js";
import { h, show } from "./dom.js";

/** `{ element, say(success) }`; `say(null)` leaves the episode for later. */
export function labelBar(sheet, name) {
  const own = sheet.labels.find((label) => label.episode === name);
  if (!own) return { element: h("p", { class: "problem", role: "alert" }, `${sheet.file} has no line for it.`), say() {} };
  const note = h("input", { type: "text", maxlength: "2000", value: own.note, "aria-label": "Note", placeholder: "note" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const buttons = [
    [true, "Success", "s"],
    [false, "Failure", "f"],
    [null, "Later", "n"],
  ].map(([success, text, key]) =>
    h(
      "button",
      {
        type: "button",
        class: success === null ? "quiet" : success ? "good" : "bad",
        "aria-pressed": success === null ? null : String(own.success === success),
        onclick: () => say(success),
      },
      text,
      " ",
      h("kbd", {}, key),
    ),
  );
  async function say(success) {
    try {
      const written = await ask(`/api/labels/${encodeURIComponent(name)}`, {
        method: "PUT",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ success, note: note.value }),
      });
      location.assign(pathOf(following(written, name)));
    } catch (error) {
      show(problem, error.message);
      problem.hidden = false;
    }
  }
  const element = h(
    "section",
    { class: "label-bar", "aria-label": "Label" },
    h("b", {}, progress(sheet)),
    h("span", {}, "Did it do what it was asked to do?"),
    buttons,
    note,
    problem,
  );
  return { element, say };
}

/** The next episode without a label, behind this one first; null where all have one, or only this one has none. */
export function following(sheet, name) {
  const at = sheet.labels.findIndex((label) => label.episode === name);
  const order = [...sheet.labels.slice(at + 1), ...sheet.labels.slice(0, Math.max(0, at))];
  return order.find((label) => label.success === null) ?? null;
}

export const pathOf = (label) => (label ? `/episodes/${encodeURIComponent(label.episode)}?label` : "/label");

export function progress({ labels }) {
  return `${labels.filter((label) => label.success !== null).length} of ${labels.length} labelled`;
}
