// Elements from plain values. Every word is set as text, so what a page or a model said can never become markup.

const SVG = "http://www.w3.org/2000/svg";

/** `h("a", { class: "x", href: "/", onclick: run }, "words", element)`; null and false are left out. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

export function show(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child));
}

/** A list of names and values; those without a value are left out. */
export function facts(rows) {
  const known = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    { class: "facts" },
    known.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

export function pill(word, kind = word) {
  return h("span", { class: `pill ${TONES[kind] ?? "other"}` }, word);
}

const TONES = { success: "good", failure: "bad", passed: "good", failed: "bad", error: "bad", none: "none" };

export function verdictPill(ruling) {
  return ruling ? pill(ruling.verdict) : pill("not judged", "none");
}
