// The episodes that a person labels: how many have a label, and each of them.

import { ask } from "./api.js";
import { h, pill, show } from "./dom.js";
import { bindKeys } from "./keys.js";
import { following, pathOf, progress } from "./label_bar.js";

const main = document.getElementById("main");

async function load() {
  let sheet;
  try {
    sheet = await ask("/api/labels");
  } catch (error) {
    show(main, h("h1", {}, "Label"), h("p", { class: "problem", role: "alert" }, error.message));
    return;
  }
  const next = following(sheet, null);
  const found = (wanted) => sheet.labels.filter(({ success }) => success === wanted).length;
  show(
    main,
    h("h1", {}, progress(sheet)),
    h("p", { class: "soft" }, `${found(true)} success, ${found(false)} failure, into ${sheet.file}. `),
    h("p", { class: "soft" }, "What judges said is not shown here. A label may be changed at any time."),
    next
      ? h("p", {}, h("a", { class: "go", href: pathOf(next) }, "Label the next episode"), " ", h("kbd", {}, "Enter"))
      : h("p", {}, "All of them have a label: ", h("code", {}, `millrace calibrate --rubric NAME --labels ${sheet.file}`)),
    h(
      "ol",
      { class: "sheet" },
      sheet.labels.map((label) =>
        h(
          "li",
          {},
          h("a", { href: pathOf(label) }, label.instruction || label.episode),
          " ",
          label.success === null ? pill("no label", "none") : pill(label.success ? "success" : "failure"),
          label.note ? h("span", { class: "soft" }, ` ${label.note}`) : null,
        ),
      ),
    ),
  );
}

bindKeys([
  { keys: ["Enter"], does: "label the next episode", run: () => main.querySelector(".go")?.click() },
]);
load();
