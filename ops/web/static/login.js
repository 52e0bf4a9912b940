// Asks for the token, which travels in a header; the answer is a cookie that no script reads.

import { ask } from "./api.js";
import { h, show } from "./dom.js";

const field = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
const said = h("p", { class: "problem", role: "alert" });
const form = h(
  "form",
  { class: "login" },
  h("label", { for: "token" }, "Token"),
  field,
  h("button", { type: "submit" }, "Sign in"),
  said,
);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  said.textContent = "";
  try {
    await ask("/api/login", { headers: { authorization: `Bearer ${field.value}` } });
    location.assign("/");
  } catch (error) {
    said.textContent = error.message;
    field.select();
  }
});

show(
  document.getElementById("main"),
  h("h1", {}, "Sign in"),
  h("p", {}, "This address asks for the token that it was started with."),
  form,
);
field.focus();
