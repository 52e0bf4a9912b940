"use strict";
// The newsletter's dialog, on the first visit of the home page.

if (!shop.state().newsletter) {
  const close = () => dialog.close();
  const form = shop.make("form", {},
    shop.make("label", { for: "welcome-email" }, "Your email"),
    shop.make("div", { class: "joined" },
      shop.make("input", { id: "welcome-email", type: "email", name: "email", autofocus: true }),
      shop.make("button", { type: "submit" }, "Sign me up")),
    shop.make("p", { role: "status", class: "status" }));
  const dialog = shop.make("dialog", { "aria-labelledby": "welcome-title", class: "welcome" },
    shop.make("button", { type: "button", class: "close", "aria-label": "Close", onclick: close }, "×"),
    shop.make("p", { class: "eyebrow" }, "Before you look around"),
    shop.make("h2", { id: "welcome-title" }, "A letter from the coast"),
    shop.make("p", {}, "Twice a month: a maker, a recipe, and what came in with the tide."),
    form,
    shop.make("button", { type: "button", class: "link", onclick: close }, "No thanks"));
  shop.subscribes(form, (said) => { close(); shop.notice(said); });
  dialog.addEventListener("close", () => shop.change((now) => { now.newsletter ||= "declined"; }));
  document.body.append(dialog);
  dialog.showModal();
}
