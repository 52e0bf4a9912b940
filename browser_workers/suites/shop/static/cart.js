"use strict";
// The cart: quantities, removing with a question, a voucher, the sums. `?add=slug:colour:size:quantity,...` fills it with what
// `#offered` knows, as a shared cart's link does.

{
  const { make, money } = shop;
  const VOUCHERS = ["HERRING10", "LIGHTHOUSE"];

  function takeOffered() {
    const offered = JSON.parse(document.getElementById("offered").textContent);
    if (!offered.length) return;
    offered.forEach(shop.add);
    history.replaceState(null, "", "/cart");
  }

  function setQuantity(index, quantity) {
    shop.change((now) => {
      if (quantity) now.cart[index].quantity = quantity;
      else now.cart.splice(index, 1);
    });
    draw();
  }

  function row(line, index) {
    const numbers = [...Array(11).keys(), ...(line.quantity > 10 ? [line.quantity] : [])];
    const select = make("select", { "aria-label": `Quantity of ${line.name}`,
                                    onchange: (event) => setQuantity(index, Number(event.target.value)) },
      numbers.map((n) => make("option", { value: n, selected: n === line.quantity }, n ? String(n) : "0 (remove)")));
    const remove = () => { if (confirm(`Remove ${line.name} from your cart?`)) setQuantity(index, 0); };
    return make("tr", {},
      make("th", { scope: "row" }, make("a", { href: `/product/${line.slug}` }, line.name),
        make("span", { class: "fine" }, shop.optionsOf(line))),
      make("td", {}, money(line.cents)), make("td", {}, select), make("td", {}, money(line.cents * line.quantity)),
      make("td", {}, make("button", { type: "button", class: "link", "aria-label": `Remove ${line.name}`, onclick: remove }, "Remove")));
  }

  function sums(now) {
    const { goods, discount, delivery, total } = shop.totals(now, "standard", false);
    const lines = [["Goods", money(goods)], discount ? [`Voucher ${now.voucher}`, "−" + money(discount)] : null,
                   ["Standard delivery", delivery ? money(delivery) : "free"], ["Total", money(total)]];
    return make("dl", { class: "sums" }, lines.filter(Boolean).map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  }

  function voucher() {
    const field = make("input", { id: "voucher", name: "voucher", value: shop.state().voucher });
    const said = make("p", { role: "status", class: "status" });
    const redeem = (event) => {
      event.preventDefault();
      const code = field.value.trim().toUpperCase(), known = VOUCHERS.includes(code);
      shop.change((now) => { now.voucher = known ? code : ""; });
      draw();
      document.querySelector(".voucher .status").textContent = known ? `${code} is redeemed.` : "We do not know this voucher.";
    };
    return make("form", { class: "voucher", onsubmit: redeem }, make("label", { for: "voucher" }, "Voucher"),
      make("div", { class: "joined" }, field, make("button", { type: "submit" }, "Redeem")), said);
  }

  function draw() {
    const now = shop.state(), place = document.getElementById("cart");
    if (!now.cart.length) {
      place.replaceChildren(make("p", { class: "empty" }, "Your cart is empty. ", make("a", { href: "/search" }, "See all products")));
      return;
    }
    const head = make("tr", {}, ["Product", "Price", "Quantity", "Sum", ""].map((text) => make("th", { scope: "col" }, text)));
    const table = make("table", { class: "lines" }, make("thead", {}, head), make("tbody", {}, now.cart.map(row)));
    const summary = make("section", { class: "panel", "aria-label": "Summary" }, make("h2", {}, "Summary"), sums(now), voucher(),
      make("a", { href: "/checkout/address", class: "button" }, "Go to the checkout"));
    place.replaceChildren(make("div", { class: "split" }, table, summary));
  }

  takeOffered();
  draw();
}
