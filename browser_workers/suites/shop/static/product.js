"use strict";
// The form of a product page: the picture takes the chosen colour, and the cart takes the product.

{
  const form = document.querySelector("form.order");
  const swatches = Object.fromEntries((form?.dataset.swatches ?? "").split(" ").map((text) => text.split(":")));
  form?.elements.colour.addEventListener("change", (event) => {
    const [main, shade] = (swatches[event.target.value] ?? Object.values(swatches)[0]).split(",");
    const style = document.querySelector(".product .picture").style;
    style.setProperty("--a", main);
    style.setProperty("--b", shade);
  });
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    const missing = [...form.querySelectorAll("select")].filter((select) => !select.value);
    form.querySelectorAll("select").forEach((select) => select.setAttribute("aria-invalid", String(missing.includes(select))));
    form.querySelector(".problem").textContent = missing.length
      ? `Please choose a ${missing.map((select) => select.name).join(" and a ")}.` : "";
    form.querySelector(".status").textContent = "";
    if (missing.length) return;
    const { slug, name, cents } = form.dataset, fields = form.elements;
    const quantity = Number(fields.quantity.value);
    shop.add({ slug, name, cents: Number(cents), colour: fields.colour.value, size: fields.size?.value ?? "", quantity });
    form.querySelector(".status").replaceChildren(`Added ${quantity} to your cart. `, shop.make("a", { href: "/cart" }, "Go to the cart"));
  });
}
