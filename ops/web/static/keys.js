// The keyboard: one key a command, listed behind `?`. Never in the way of typing, or of a browser's own shortcuts.

import { h } from "./dom.js";

const TYPED_INTO = "input:not([type=checkbox]), select, textarea";

/** `bindings`: of `{ keys: ["j", "ArrowDown"], does: "next", run }`. */
export function bindKeys(bindings) {
  const dialog = helpDialog(bindings);
  const help = document.getElementById("help");
  document.body.append(dialog);
  help.hidden = false;
  help.addEventListener("click", () => dialog.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || dialog.open) return;
    const typing = event.target instanceof Element && event.target.closest(TYPED_INTO);
    if (typing) {
      // A search field would empty itself.
      if (event.key === "Escape") {
        event.preventDefault();
        event.target.blur();
      }
      return;
    }
    if (event.key === "?") dialog.showModal();
    const binding = bindings.find((each) => each.keys.includes(event.key));
    if (binding === undefined && event.key !== "?") return;
    event.preventDefault();
    binding?.run();
  });
}

const NAMES = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" };

function helpDialog(bindings) {
  const rows = [...bindings, { keys: ["?"], does: "this list" }].map(({ keys, does }) =>
    h(
      "tr",
      {},
      h(
        "td",
        {},
        keys.map((key) => [h("kbd", {}, NAMES[key] ?? key), " "]),
      ),
      h("td", {}, does),
    ),
  );
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = h(
    "dialog",
    { class: "help", "aria-label": "Keyboard shortcuts" },
    h("h2", {}, "Keyboard"),
    h("table", {}, rows),
    close,
  );
  return dialog;
}
