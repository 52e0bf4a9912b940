"use strict";
// Forms of labelled fields that say what is missing, for the checkout and the account.

shop.forms = (() => {
  const { make } = shop;
  const COUNTRIES = ["Ireland", "Norway", "Portugal", "Austria", "Belgium"];
  const ADDRESS = [
    { name: "name", label: "Full name" }, { name: "street", label: "Street and number" },
    { name: "postcode", label: "Postcode", pattern: /^[\w -]{3,10}$/, problem: "A postcode has 3 to 10 letters or digits." },
    { name: "city", label: "City" }, { name: "country", label: "Country", choices: COUNTRIES },
  ];
  const EMAIL = { name: "email", label: "Email", pattern: /^[^\s@]+@[^\s@]+\.[^\s@]+$/, problem: "This is not an email address." };

  /** One field: {name, label, choices?, pattern?, problem?, optional?, type?}. */
  function field(spec, value = "") {
    const id = `field-${spec.name}`, shared = { id, name: spec.name, "aria-describedby": `${id}-problem` };
    const input = spec.choices
      ? make("select", shared, make("option", { value: "" }, "Please choose"),
          spec.choices.map((choice) => make("option", { value: choice, selected: choice === value }, choice)))
      : make("input", { ...shared, type: spec.type ?? "text", value, autocomplete: "off" });
    return make("div", { class: "field" }, make("label", { for: id }, spec.label), input,
      make("p", { class: "problem", id: `${id}-problem` }));
  }

  /** The values of a form when all are right; else null, with a sentence at each that is not. */
  function values(form, specs) {
    let wrong = null;
    const found = {};
    for (const spec of specs) {
      const input = form.elements[spec.name], value = input.value.trim();
      let problem = "";
      if (!value && !spec.optional) problem = `Please fill in: ${spec.label}.`;
      else if (value && spec.pattern && !spec.pattern.test(value)) problem = spec.problem;
      document.getElementById(`field-${spec.name}-problem`).textContent = problem;
      input.setAttribute("aria-invalid", String(Boolean(problem)));
      if (problem) wrong ??= input;
      found[spec.name] = value;
    }
    wrong?.focus();
    return wrong ? null : found;
  }

  const oneLine = (address) => `${address.name}, ${address.street}, ${address.postcode} ${address.city}, ${address.country}`;

  return { ADDRESS, EMAIL, field, values, oneLine };
})();
