"use strict";
// Signing in and out, and the pages of an account: overview, orders, one order, addresses, preferences.

{
  const { make, money, go } = shop;
  const { ADDRESS, field, values, oneLine } = shop.forms;
  const CREDENTIALS = [{ name: "email", label: "Email" }, { name: "password", label: "Password", type: "password" }];
  const PREFERENCES = [
    { name: "letters", label: "Newsletter", choices: ["Never", "Monthly", "Twice a month"] },
    { name: "language", label: "Language", choices: ["English", "German", "Portuguese", "Norwegian"] },
    { name: "contact", label: "Reach me by", choices: ["Email", "Telephone", "Post"] },
  ];
  const place = document.getElementById("account"), view = place.dataset.view;
  const status = () => make("p", { role: "status", class: "status" });

  function panel(title, submit, ...parts) {
    const made = make("form", { class: "panel", novalidate: true }, make("h2", {}, title), parts);
    made.addEventListener("submit", (event) => { event.preventDefault(); submit(made); });
    return made;
  }

  function orderRow(order) {
    return make("tr", {}, make("th", { scope: "row" }, make("a", { href: `/account/order?number=${order.number}` }, order.number)),
      make("td", {}, order.date), make("td", {}, order.status), make("td", {}, money(order.total)));
  }

  const orderTable = (orders) => make("table", { class: "lines" },
    make("thead", {}, make("tr", {}, ["Order", "Date", "Status", "Total"].map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, orders.map(orderRow)));

  const draw = {
    login() {
      const said = make("p", { role: "alert", class: "problem" });
      return [panel("Sign in", (form) => {
        const given = values(form, CREDENTIALS);
        if (!given) return;
        const known = JSON.parse(document.getElementById("customers").textContent);
        const found = known.find((each) => each.email === given.email.toLowerCase() && each.password === given.password);
        said.textContent = found ? "" : "Email and password do not fit.";
        if (!found) return;
        shop.change((now) => { now.user = found.email; now.customers[found.email] ??= found; });
        go("/account");
      }, CREDENTIALS.map((spec) => field(spec)), said, make("button", { type: "submit" }, "Sign in"))];
    },

    account(me) {
      const leave = () => { shop.change((now) => { now.user = ""; }); go("/"); };
      return [make("p", { class: "lead" }, `Good to see you, ${me.name}.`), make("h2", {}, "Latest order"),
        orderTable(me.orders.slice(0, 1)), make("button", { type: "button", class: "quiet", onclick: leave }, "Sign out")];
    },

    orders: (me) => [orderTable(me.orders)],

    order(me) {
      const order = me.orders.find((each) => each.number === new URLSearchParams(location.search).get("number"));
      if (!order) return [make("p", { class: "empty" }, "There is no such order.")];
      const again = () => { order.lines.forEach(shop.add); go("/cart"); };
      return [make("h2", {}, `Order ${order.number}`), make("p", {}, `${order.date} · ${order.status}`),
        make("ul", {}, order.lines.map((line) => make("li", {}, `${line.quantity} × `,
          make("a", { href: `/product/${line.slug}` }, line.name), ` (${shop.optionsOf(line)}), ${money(line.cents)} each`))),
        make("p", {}, make("strong", {}, `Total ${money(order.total)}`), `, sent to ${oneLine(order.address)}`),
        make("button", { type: "button", onclick: again }, "Order again")];
    },

    addresses(me) {
      const saved = me.addresses.map((address, index) => make("li", {}, oneLine(address), " ",
        index === me.standard ? make("span", { class: "tag still" }, "Default")
          : make("button", { type: "button", class: "quiet", "aria-label": `Make the address in ${address.city} the default`,
                             onclick: () => save((mine) => { mine.standard = index; }) }, "Make default")));
      return [make("ul", { class: "saved panel" }, saved), panel("Add an address", (form) => {
        const address = values(form, ADDRESS);
        if (address) save((mine) => { mine.addresses.push(address); });
      }, ADDRESS.map((spec) => field(spec)), make("button", { type: "submit" }, "Save address"))];
    },

    preferences(me) {
      const said = status();
      return [panel("Preferences", (form) => {
        const preferences = values(form, PREFERENCES);
        if (!preferences) return;
        shop.change((now) => { shop.customer(now).preferences = preferences; });
        said.textContent = "Your preferences are saved.";
      }, PREFERENCES.map((spec) => field(spec, me.preferences[spec.name])), make("button", { type: "submit" }, "Save preferences"), said)];
    },
  };

  function save(how) {
    shop.change((now) => how(shop.customer(now)));
    drawNow();
  }

  function drawNow() {
    const me = shop.customer();
    if (view !== "login" && !me) location.replace("/login");
    else place.replaceChildren(...draw[view](me));
  }

  drawNow();
}
