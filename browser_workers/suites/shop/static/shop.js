"use strict";
// What this visitor has done, kept in the browser's own storage, and the parts of every page that show it.
// Page checks read window.shop.state().

window.shop = (() => {
  const KEY = "tern-and-thistle";
  const NOTHING = { consent: "", newsletter: "", user: "", cart: [], voucher: "", draft: {}, placed: [], customers: {} };
  const FREE_FROM = 8000, WRAP = 300;
  const DELIVERY = { standard: ["Standard, 3 to 5 working days", 490], express: ["Express, next working day", 1150],
                     collect: ["Collect in a store", 0] };

  /** Everything there is: {consent, newsletter, user, cart, voucher, draft, placed, customers}. */
  function state() {
    try {
      return { ...structuredClone(NOTHING), ...JSON.parse(localStorage.getItem(KEY)) };
    } catch {
      return structuredClone(NOTHING);
    }
  }

  /** Changes what there is, and shows it. */
  function change(how) {
    const now = state();
    how(now);
    localStorage.setItem(KEY, JSON.stringify(now));
    show();
    return now;
  }

  /** The record of whoever is signed in: {name, email, addresses, orders, preferences}; null when nobody is. */
  const customer = (now = state()) => now.customers[now.user] ?? null;

  const money = (cents) => "€" + (cents / 100).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

  /** Cents of a cart: {goods, discount, delivery, wrap, total}. */
  function totals(now = state(), way = now.draft.delivery ?? "standard", wrapped = now.draft.wrap ?? false) {
    const goods = now.cart.reduce((sum, line) => sum + line.cents * line.quantity, 0);
    let discount = 0;
    if (now.voucher === "HERRING10") discount = Math.round(goods / 10);
    if (now.voucher === "LIGHTHOUSE" && goods >= 10000) discount = 1500;
    const free = way === "standard" && goods - discount >= FREE_FROM;
    const delivery = now.cart.length && !free ? DELIVERY[way][1] : 0;
    const wrap = wrapped ? WRAP : 0;
    return { goods, discount, delivery, wrap, total: goods - discount + delivery + wrap };
  }

  const optionsOf = (line) => [line.colour, line.size].filter(Boolean).join(", ");

  /** Puts a line into the cart, onto an equal one where there is one. */
  function add(line) {
    return change((now) => {
      const same = now.cart.find((other) => other.slug === line.slug && other.colour === line.colour && other.size === line.size);
      if (same) same.quantity += line.quantity;
      else now.cart.push(line);
    });
  }

  /** An element with children; texts are never read as HTML. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value != null) element.setAttribute(name, value);
    }
    element.append(...children.flat(Infinity).filter((child) => child != null));
    return element;
  }

  const go = (path) => { location.href = path; };

  function show() {
    const now = state();
    const link = document.getElementById("account-link");
    link.textContent = customer(now)?.name.split(" ")[0] ?? "Sign in";
    link.href = now.user ? "/account" : "/login";
    const count = now.cart.reduce((sum, line) => sum + line.quantity, 0);
    document.getElementById("cart-count").textContent = count;
    document.getElementById("cart-link").setAttribute("aria-label", `Cart, ${count} item${count === 1 ? "" : "s"}`);
  }

  /** Says something at the edge of the page, until the next page. */
  function notice(text) {
    document.querySelector(".notice")?.remove();
    document.body.append(make("p", { class: "notice", role: "status" }, text));
  }

  function askConsent() {
    const choose = (choice) => () => {
      change((now) => { now.consent = choice; });
      document.cookie = `consent=${choice}; path=/; max-age=31536000`;
      bar.remove();
      notice(choice === "all" ? "All cookies are allowed." : "Only necessary cookies are allowed.");
    };
    const bar = make("section", { class: "consent", "aria-label": "Cookies" },
      make("p", {}, "We keep your cart in your browser. May we count visits as well? ",
        make("a", { href: "/help/privacy" }, "Privacy and cookies")),
      make("button", { type: "button", class: "quiet", onclick: choose("necessary") }, "Only necessary"),
      make("button", { type: "button", onclick: choose("all") }, "Accept all"));
    document.body.append(bar);
  }

  /** Makes a newsletter form subscribe; `then` runs behind that, with what the form said. */
  function subscribes(form, then = () => {}) {
    form.noValidate = true;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const field = form.querySelector("input[type=email]"), email = field.value.trim();
      const right = /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(email);
      field.setAttribute("aria-invalid", String(!right));
      const said = right ? `Thank you. We write to ${email}.` : "Please write an email address.";
      form.querySelector(".status").textContent = said;
      if (right) {
        change((now) => { now.newsletter = email; });
        then(said);
      }
    });
  }

  document.querySelectorAll("form[data-newsletter]").forEach((form) => subscribes(form));
  show();
  if (!state().consent) askConsent();
  return { NOTHING, state, change, customer, money, totals, optionsOf, add, make, notice, go, subscribes, DELIVERY };
})();
