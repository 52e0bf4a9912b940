"use strict";
// The checkout's steps. Each is a page of its own; what was filled in is kept in the draft until the order is placed.

{
  const { make, money, go } = shop;
  const { ADDRESS, EMAIL, field, values, oneLine } = shop.forms;
  const STEPS = ["address", "delivery", "payment", "review"];
  const PAYMENTS = { invoice: "Invoice, 14 days", transfer: "Bank transfer in advance", giftcard: "Gift card" };
  const place = document.getElementById("checkout"), step = place.dataset.step;

  const keep = (what) => shop.change((now) => Object.assign(now.draft, what));
  const next = () => go(`/checkout/${STEPS[STEPS.indexOf(step) + 1]}`);
  const buttons = (label) => make("div", { class: "buttons" }, make("button", { type: "submit" }, label),
    make("a", { href: step === "address" ? "/cart" : `/checkout/${STEPS[STEPS.indexOf(step) - 1]}`, class: "clear" }, "Back"));

  function form(submit, ...parts) {
    const made = make("form", { class: "panel", novalidate: true }, parts);
    made.addEventListener("submit", (event) => { event.preventDefault(); submit(made); });
    return made;
  }

  function radios(legend, name, choices, chosen) {
    return make("fieldset", {}, make("legend", {}, legend), Object.entries(choices).map(([value, label]) =>
      make("label", { class: "tick" }, make("input", { type: "radio", name, value, checked: value === chosen }), ` ${label}`)));
  }

  const draw = {
    address(now) {
      const specs = [...ADDRESS, EMAIL], known = shop.customer(now), draft = now.draft.address ?? {};
      const fields = specs.map((spec) => field(spec, draft[spec.name] ?? (spec.name === "email" ? known?.email : "")));
      const made = form((form) => {
        const address = values(form, specs);
        if (address) { keep({ address }); next(); }
      }, make("h2", {}, "Where does it go?"), fields, buttons("Continue to delivery"));
      if (!known?.addresses.length) return [made];
      const take = (address) => () => { for (const spec of ADDRESS) made.elements[spec.name].value = address[spec.name]; };
      const saved = known.addresses.map((address) => make("li", {}, oneLine(address), " ",
        make("button", { type: "button", class: "quiet", "aria-label": `Use the address in ${address.city}`, onclick: take(address) },
          "Use this")));
      return [make("section", { class: "panel" }, make("h2", {}, "Your addresses"), make("ul", { class: "saved" }, saved)), made];
    },

    delivery(now) {
      const choices = Object.fromEntries(Object.entries(shop.DELIVERY).map(([way, [label]]) =>
        [way, `${label} (${shop.totals(now, way).delivery ? money(shop.totals(now, way).delivery) : "free"})`]));
      const wrap = make("input", { type: "checkbox", name: "wrap", checked: now.draft.wrap });
      return [form((form) => {
        keep({ delivery: form.elements.delivery.value, wrap: form.elements.wrap.checked, note: form.elements.note.value.trim() });
        next();
      }, make("h2", {}, "How does it travel?"), radios("Delivery", "delivery", choices, now.draft.delivery ?? "standard"),
      make("label", { class: "tick" }, wrap, ` Gift wrap (${money(300)})`),
      field({ name: "note", label: "Note for the parcel (optional)" }, now.draft.note), buttons("Continue to payment"))];
    },

    payment(now) {
      const card = { name: "giftcard", label: "Gift card number (only for gift cards)", optional: true };
      const said = make("p", { role: "alert", class: "problem" });
      return [form((form) => {
        const payment = form.elements.payment.value, number = form.elements.giftcard.value.replace(/\s/g, "");
        said.textContent = !payment ? "Please choose how to pay."
          : payment === "giftcard" && !/^\d{12}$/.test(number) ? "A gift card has 12 digits."
          : !form.elements.terms.checked ? "Please agree to the terms." : "";
        if (!said.textContent) { keep({ payment }); next(); }
      }, make("h2", {}, "How do you pay?"), radios("Payment", "payment", PAYMENTS, now.draft.payment), field(card),
      make("label", { class: "tick" }, make("input", { type: "checkbox", name: "terms" }), " I agree to the terms"), said,
      buttons("Continue to review"))];
    },

    review(now) {
      const { address, delivery, payment } = now.draft, sums = shop.totals(now);
      const rows = [["Goods", money(sums.goods)], sums.discount ? [`Voucher ${now.voucher}`, "−" + money(sums.discount)] : null,
                    ["Delivery", sums.delivery ? money(sums.delivery) : "free"], sums.wrap ? ["Gift wrap", money(sums.wrap)] : null,
                    ["Total", money(sums.total)]].filter(Boolean);
      return [form(placeOrder, make("h2", {}, "Is everything right?"),
        make("ul", {}, now.cart.map((line) => make("li", {}, `${line.quantity} × ${line.name} (${shop.optionsOf(line)})`))),
        make("p", {}, make("strong", {}, "To: "), oneLine(address)),
        make("p", {}, make("strong", {}, "By: "), shop.DELIVERY[delivery][0]),
        make("p", {}, make("strong", {}, "Paid by: "), PAYMENTS[payment]),
        make("dl", { class: "sums" }, rows.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
        buttons("Place order"))];
    },

    thanks(now) {
      const order = now.placed.at(-1);
      if (!order) return [make("p", { class: "empty" }, "There is no order yet.")];
      return [make("section", { class: "panel" }, make("h2", {}, "Thank you!"),
        make("p", {}, "Your order has the number ", make("strong", {}, order.number), "."),
        make("p", {}, `We write to ${order.address.email} when it leaves. The total is ${money(order.total)}.`),
        make("a", { href: "/", class: "button" }, "Back to the shop"))];
    },
  };

  function placeOrder() {
    const now = shop.state(), { address, delivery, payment, wrap = false, note = "" } = now.draft;
    const order = { number: `T-${5001 + now.placed.length}`, date: "today", status: "Received", lines: now.cart, address, delivery,
                    payment, wrap, note, voucher: now.voucher, total: shop.totals(now).total };
    shop.change((state) => {
      state.placed.push(order);
      shop.customer(state)?.orders.unshift(order);
      Object.assign(state, { cart: [], voucher: "", draft: {} });
    });
    go("/checkout/thanks");
  }

  /** The first step that still lacks something. */
  function due({ cart, draft }) {
    if (!cart.length) return "/cart";
    const missing = STEPS.slice(0, STEPS.indexOf(step)).find((each) => !draft[each]);
    return missing ? `/checkout/${missing}` : "";
  }

  const now = shop.state(), elsewhere = step === "thanks" ? "" : due(now);
  if (elsewhere) location.replace(elsewhere);
  else place.replaceChildren(...draw[step](now));
}
