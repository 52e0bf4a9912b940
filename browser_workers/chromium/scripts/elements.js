// Finds the elements that a visitor can act on, and where each is reached. Runs in a world of its own: pages neither see it
// nor influence it, and nothing here changes a document. Coordinates are those of the top document's viewport.
//
// Getters and methods come from prototypes, since forms and documents answer to their children's names before their own.
globalThis.millraceElements = (() => {
  "use strict";
  const getter = (prototype, name) => {
    const { get } = Object.getOwnPropertyDescriptor(prototype, name);
    return (node) => get.call(node);
  };
  const method = (prototype, name) => {
    const call = prototype[name];
    return (node, ...given) => call.apply(node, given);
  };
  const nodeType = getter(Node.prototype, "nodeType");
  const parentOf = getter(Node.prototype, "parentNode");
  const documentOf = getter(Node.prototype, "ownerDocument");
  const isConnected = getter(Node.prototype, "isConnected");
  const rawText = getter(Node.prototype, "textContent");
  const rootOf = method(Node.prototype, "getRootNode");
  const localName = getter(Element.prototype, "localName");
  const namespaceOf = getter(Element.prototype, "namespaceURI");
  const shadowOf = getter(Element.prototype, "shadowRoot");
  const slotOf = getter(Element.prototype, "assignedSlot");
  const attribute = method(Element.prototype, "getAttribute");
  const matches = method(Element.prototype, "matches");
  const find = method(Element.prototype, "querySelector");
  const findAll = method(Element.prototype, "querySelectorAll");
  const rectOf = method(Element.prototype, "getBoundingClientRect");
  const rectsOf = method(Element.prototype, "getClientRects");
  const shown = method(Element.prototype, "checkVisibility");
  const scrollTo = method(Element.prototype, "scrollIntoView");
  const innerText = getter(HTMLElement.prototype, "innerText");
  const walker = method(Document.prototype, "createTreeWalker");
  const windowOf = getter(Document.prototype, "defaultView");
  const atPoint = method(Document.prototype, "elementFromPoint");
  const atShadowPoint = method(ShadowRoot.prototype, "elementFromPoint");
  const allAtShadowPoint = method(ShadowRoot.prototype, "elementsFromPoint");
  const referredTo = ["ariaLabelledByElements", "ariaDescribedByElements"].map((name) => getter(Element.prototype, name));
  const hostOf = getter(ShadowRoot.prototype, "host");
  const byId = { 9: method(Document.prototype, "getElementById"), 11: method(DocumentFragment.prototype, "getElementById") };

  const CONTROLS =
    'a[href], area[href], button, input:not([type="hidden" i]), select, textarea, summary, audio[controls], video[controls], ' +
    '[contenteditable]:not([contenteditable="false" i])';
  const ROLES =
    "button link checkbox radio switch tab menuitem menuitemcheckbox menuitemradio option combobox textbox searchbox slider " +
    "spinbutton treeitem";
  const ACTIVE = `${CONTROLS}, ${ROLES.split(" ").map((role) => `[role="${role}"]`).join(", ")}`;
  const DISABLED = ':disabled, [aria-disabled="true"]';
  const FRAMES = new Set(["iframe", "frame"]);
  // Attributes that the accessibility tree says, what is named by its content, and what refers to others for its name.
  const SAID = (
    "aria-label aria-description aria-placeholder aria-roledescription aria-valuetext alt title placeholder label summary href " +
    "src srcset"
  ).split(" ");
  const SAYING = SAID.map((name) => `[${name}]`).join(", ");
  const BY_CONTENT =
    "a, button, summary, option, tr, td, th, h1, h2, h3, h4, h5, h6, " +
    ("button cell checkbox columnheader gridcell heading link menuitem menuitemcheckbox menuitemradio option radio row " +
      "rowheader switch tab tooltip treeitem").split(" ").map((role) => `[role="${role}"]`).join(", ");
  const REFERRING = "[aria-labelledby], [aria-describedby]";
  const TEXT_LIMIT = 100;
  const TAG_LIMIT = 30;
  const PAINT_MS = 3000, HIDDEN_MS = 50, STEP_MS = 50;
  const LONG_TEXT = 1000;
  const RAW_LIMIT = 4000;
  const MUCH_OF_IT = 0.9;
  const SAME_PLACE = 0.8;

  // Elements that scripts listen on for clicks; the browser says which.
  const listening = new WeakSet();
  // What the last scan found, by position.
  let found = [];
  let marked = new WeakSet();

  // No `instanceof`: what is in a frame is of other classes.
  const isElement = (node) => nodeType(node) === Node.ELEMENT_NODE;
  const isShadow = (node) => nodeType(node) === Node.DOCUMENT_FRAGMENT_NODE && "host" in node;
  const isHtml = (element) => namespaceOf(element) === "http://www.w3.org/1999/xhtml";

  // --- places --------------------------------------------------------------------------------------------------------------

  const frameOf = (element) => {
    try {
      return FRAMES.has(localName(element)) ? element.contentDocument : null;
    } catch {
      return null;
    }
  };

  // Where a frame's content lies, when the frame's own document lies at `place`.
  const insideOf = (frame, place) => {
    const rect = rectOf(frame);
    const style = getComputedStyle(frame);
    const scale = frame.offsetWidth ? rect.width / frame.offsetWidth : 1;
    const edge = (border, padding) => (frame[border] + parseFloat(style[padding])) * scale || 0;
    const left = place.left + (rect.left + edge("clientLeft", "paddingLeft")) * place.scale;
    const top = place.top + (rect.top + edge("clientTop", "paddingTop")) * place.scale;
    const width = (frame.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)) * scale * place.scale;
    const height = (frame.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom)) * scale * place.scale;
    const clip = overlap(place.clip, { left, top, right: left + (width || 0), bottom: top + (height || 0) });
    return { left, top, scale: place.scale * scale, clip };
  };

  const whole = () => {
    const view = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    return { left: 0, top: 0, scale: 1, clip: view };
  };

  const placeOf = (document_) => {
    if (document_ === document) return whole();
    const frame = windowOf(document_)?.frameElement;
    return frame ? insideOf(frame, placeOf(documentOf(frame))) : null;
  };

  const moved = (rect, place) => ({
    left: place.left + rect.left * place.scale,
    top: place.top + rect.top * place.scale,
    right: place.left + rect.right * place.scale,
    bottom: place.top + rect.bottom * place.scale,
  });

  const overlap = (a, b) => ({
    left: Math.max(a.left, b.left),
    top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right),
    bottom: Math.min(a.bottom, b.bottom),
  });

  const area = (rect) => Math.max(0, rect.right - rect.left) * Math.max(0, rect.bottom - rect.top);

  const holds = (clip, rect) => {
    const x = (rect.left + rect.right) / 2;
    const y = (rect.top + rect.bottom) / 2;
    return x >= clip.left && x < clip.right && y >= clip.top && y < clip.bottom;
  };

  const coincide = (a, b) => {
    const common = area(overlap(a, b));
    return common >= SAME_PLACE * (area(a) + area(b) - common);
  };

  // --- hits ----------------------------------------------------------------------------------------------------------------

  // What lies above a node as it is rendered: slots before parents, hosts above shadow roots; null above a document.
  const above = (node) => {
    if (isShadow(node)) return hostOf(node);
    return (isElement(node) && slotOf(node)) || parentOf(node);
  };

  const isWithin = (node, ancestor) => {
    for (let each = node; each; each = above(each)) if (each === ancestor) return true;
    return false;
  };

  // The innermost element at a point, through shadow roots and frames.
  const hitAt = (x, y) => {
    let place = whole();
    let hit = atPoint(document, x, y);
    for (let depth = 0; hit && depth < 100; depth += 1) {
      const [localX, localY] = [(x - place.left) / place.scale, (y - place.top) / place.scale];
      const shadow = shadowOf(hit);
      const inner = shadow && atShadowPoint(shadow, localX, localY);
      const content = frameOf(hit);
      if (inner && inner !== hit && rootOf(inner) === shadow) {
        hit = inner;
      } else if (content) {
        place = insideOf(hit, place);
        const next = atPoint(content, (x - place.left) / place.scale, (y - place.top) / place.scale);
        if (!next) return hit;
        hit = next;
      } else {
        return hit;
      }
    }
    return hit;
  };

  // A click there reaches `element`: 2 when nothing marked inside of it takes it first, 1 when something does, 0 when not at all.
  const reached = (element, x, y) => {
    const hit = hitAt(x, y);
    if (!hit) return 0;
    let own = 2;
    for (let each = hit; each; each = above(each)) {
      if (each === element) return own;
      if (isElement(each) && localName(each) === "label" && each.control === element) return own;
      if (marked.has(each)) own = 1;
    }
    // Text that stands in a slot belongs to the host, although what is around the slot is clicked.
    const root = rootOf(element);
    if (!isShadow(root) || !isWithin(hit, hostOf(root))) return 0;
    const place = placeOf(documentOf(element));
    const all = place ? allAtShadowPoint(root, (x - place.left) / place.scale, (y - place.top) / place.scale) : [];
    return all.length && hostOf(root) === hit && isWithin(all.find((each) => rootOf(each) === root) ?? hit, element) ? 2 : 0;
  };

  const pointsOf = (element, place) => {
    const middle = ({ left, top, right, bottom }, across, down) => [left + (right - left) * across, top + (bottom - top) * down];
    const seen = overlap(moved(rectOf(element), place), place.clip);
    const points = [middle(seen, 0.5, 0.5)];
    const lines = [...rectsOf(element)].slice(0, 4);
    // A link over several lines may have nothing in the middle of its box.
    if (lines.length > 1) {
      const parts = lines.map((line) => overlap(moved(line, place), place.clip)).filter((part) => area(part) > 0);
      points.push(...parts.map((part) => middle(part, 0.5, 0.5)));
    }
    for (const [across, down] of [[0.25, 0.5], [0.75, 0.5], [0.5, 0.2], [0.5, 0.8], [0.1, 0.15], [0.9, 0.15], [0.1, 0.85], [0.9, 0.85]])
      points.push(middle(seen, across, down));
    return points.map(([x, y]) => [Math.floor(x), Math.floor(y)]);
  };

  // The best point to click an element at: [x, y, how well it is reached].
  const clickable = (element, place) => {
    let best = [0, 0, 0];
    for (const [x, y] of pointsOf(element, place)) {
      const { left, top, right, bottom } = place.clip;
      if (x < left || x >= right || y < top || y >= bottom) continue;
      const how = reached(element, x, y);
      if (how > best[2]) best = [x, y, how];
      if (best[2] === 2) break;
    }
    return best;
  };

  // --- names ---------------------------------------------------------------------------------------------------------------

  const plain = (text) => String(text ?? "").replace(/[\s\u200b]+/g, " ").trim();
  // Never with half a character at its end or inside.
  const cut = (text, length) => text.slice(0, length).replace(/[\ud800-\udbff]$/, "").toWellFormed();
  const short = (text) => (text.length > TEXT_LIMIT ? `${cut(text, TEXT_LIMIT - 1)}…` : text.toWellFormed());

  const textIn = (element) => {
    const slots = isShadow(rootOf(element)) ? [...findAll(element, "slot")] : [];
    const slotted = slots.flatMap((slot) => slot.assignedNodes({ flatten: true })).map(rawText).join(" ");
    const raw = rawText(element) ?? "";
    if (slotted) return plain(`${raw} ${slotted}`.slice(0, RAW_LIMIT));
    return plain(raw.length > RAW_LIMIT || !isHtml(element) ? raw.slice(0, RAW_LIMIT) : innerText(element));
  };

  const named = (element) => {
    const root = rootOf(element);
    const parts = plain(attribute(element, "aria-labelledby")).split(" ");
    const labels = parts.map((id) => id && byId[nodeType(root)]?.(root, id)).filter(Boolean);
    return plain(labels.map(textIn).join(" ")) || plain(attribute(element, "aria-label"));
  };

  const content = (element) => {
    const text = textIn(element) || (shadowOf(element) ? plain(rawText(shadowOf(element)).slice(0, RAW_LIMIT)) : "");
    if (text) return text;
    const inner = find(element, "img[alt], svg title, [aria-label], [title]");
    if (!inner) return "";
    return plain(attribute(inner, "aria-label") || attribute(inner, "alt") || attribute(inner, "title") || rawText(inner));
  };

  const fieldText = (element, type) => {
    const labels = [...(element.labels ?? [])].map(textIn).join(" ");
    const name = named(element) || plain(labels) || plain(attribute(element, "placeholder")) || plain(attribute(element, "title"));
    if (type === "checkbox" || type === "radio") return short(name) + (element.checked ? " (checked)" : "");
    let value = "";
    if (localName(element) === "select") value = [...element.selectedOptions].map((option) => option.label).join(", ");
    else if (type !== "password" && type !== "file") value = element.value;
    value = short(plain(value));
    return name && value ? `${short(name)}: ${value}` : value || short(name);
  };

  const textOf = (element) => {
    const tag = localName(element);
    const type = tag === "input" ? element.type : "";
    if (["submit", "button", "reset", "image"].includes(type)) {
      const standard = { submit: "Submit", reset: "Reset" }[type];
      const own = named(element) || plain(attribute(element, "alt")) || plain(element.value) || plain(attribute(element, "title"));
      return short(own || standard || "");
    }
    if (["input", "select", "textarea"].includes(tag)) return fieldText(element, type);
    const own = named(element) || content(element) || plain(attribute(element, "alt")) || plain(attribute(element, "title"));
    return short(own || plain(attribute(element, "placeholder")) || plain(attribute(element, "name")));
  };

  const tagOf = (element) => {
    const tag = cut(localName(element), TAG_LIMIT);
    const role = plain(attribute(element, "role"));
    if (tag === "input") return `input[type=${element.type}]`;
    return role && !matches(element, CONTROLS) ? `${tag}[role=${cut(role, TAG_LIMIT)}]` : tag;
  };

  const described = (element) => {
    const text = textOf(element);
    return text ? `${tagOf(element)} "${short(text)}"` : tagOf(element);
  };

  // --- the scan ------------------------------------------------------------------------------------------------------------

  // 2: a control by its own nature; 1: something that reacts; 0: nothing.
  const kindOf = (element, pointers) => {
    const cursor = getComputedStyle(element).cursor;
    if (cursor === "pointer") pointers.add(element);
    if (matches(element, ACTIVE)) return 2;
    if (FRAMES.has(localName(element))) return 2;
    if (localName(element) === "label") return element.control && !isSeen(element.control) ? 2 : 0;
    if (listening.has(element) || matches(element, '[onclick], [tabindex]:not([tabindex^="-"])')) return 1;
    if (cursor !== "pointer") return 0;
    const parent = above(element);
    return parent && isElement(parent) && (pointers.has(parent) || getComputedStyle(parent).cursor === "pointer") ? 0 : 1;
  };

  const isSeen = (element) => {
    const rect = rectOf(element);
    return rect.width > 1 && rect.height > 1 && shown(element, { visibilityProperty: true });
  };

  // A native control may be invisible below a screenshot of itself and still be what is clicked.
  const isShown = (element) =>
    shown(element, { visibilityProperty: true, opacityProperty: true }) ||
    (matches(element, 'input:is([type="checkbox" i], [type="radio" i], [type="file" i]), select') &&
      shown(element, { visibilityProperty: true }));

  // An element that answers like no other costs its own mark at most.
  const tolerant = (compute, otherwise) => {
    try {
      return compute();
    } catch {
      return otherwise;
    }
  };

  const said = (element) => SAID.reduce((sum, name) => sum + (attribute(element, name) ?? "").length, 0);

  // How long what stands in an element is, with what its attributes say.
  const written = (element) => {
    const parts = [element, shadowOf(element)].filter(Boolean);
    const inside = parts.flatMap((part) => [...findAll(part, SAYING)]);
    return [element, ...inside].reduce((sum, each) => sum + said(each), parts.reduce((sum, part) => sum + rawText(part).length, 0));
  };

  // How long what is said of an element is: many can say one text, which costs a page nothing.
  const saidOf = (element, spent, lengths) => {
    let length = matches(element, SAYING) ? said(element) : 0;
    if (matches(element, BY_CONTENT)) length += rawText(element).length;
    if (matches(element, "input, textarea")) length += element.value.length;
    if (!matches(element, REFERRING)) return length;
    for (const other of referredTo.flatMap((of) => of(element) ?? [])) {
      if (spent()) break;
      if (!lengths.has(other)) lengths.set(other, written(other));
      length += lengths.get(other);
    }
    return length;
  };

  // What an element counts for: long names cost as much as many elements, wherever they are read.
  const weight = (length) => 1 + Math.floor(length / LONG_TEXT);

  // Whether a walk has taken so many milliseconds. A process that stood still has not walked: of a step that took longer,
  // STEP_MS count.
  const spending = (budgetMs) => {
    let [left, last] = [budgetMs, performance.now()];
    return () => {
      const now = performance.now();
      left -= Math.min(now - last, STEP_MS);
      last = now;
      return left < 0;
    };
  };

  const collect = (root, place, spent, into) => {
    const steps = walker(documentOf(root) ?? root, root, NodeFilter.SHOW_ELEMENT);
    for (let element = steps.nextNode(); element; element = steps.nextNode()) {
      if (spent() || into.all.length >= into.most) {
        into.complete = false;
        return;
      }
      into.visited += weight(tolerant(() => saidOf(element, spent, into.lengths), 0));
      const shadow = shadowOf(element);
      const raw = rectOf(element);
      if (raw.width >= 2 && raw.height >= 2) tolerant(() => consider(element, raw, place, into), null);
      if (shadow) collect(shadow, place, spent, into);
      const inner = frameOf(element);
      if (inner) {
        const within = insideOf(element, place);
        if (area(within.clip) > 0) collect(inner, within, spent, into);
      }
    }
  };

  const consider = (element, raw, place, into) => {
    const rect = moved(raw, place);
    const visible = overlap(rect, place.clip);
    if (!holds(place.clip, rect) || area(visible) > MUCH_OF_IT * innerWidth * innerHeight) return;
    if (frameOf(element)) return;
    const kind = kindOf(element, into.pointers);
    if (!kind || !isShown(element)) return;
    const candidate = { element, place, rect: visible, kind, dropped: matches(element, DISABLED), inner: 0, outer: null };
    into.all.push(candidate);
    into.by.set(element, candidate);
  };

  // One mark for what a visitor takes for one thing.
  const settleNesting = (candidates, by) => {
    for (const each of candidates) {
      for (let node = above(each.element); node && !each.outer; node = above(node)) each.outer = by.get(node) ?? null;
      const { outer } = each;
      if (!outer) continue;
      if (outer.kind === 2 && (each.kind === 1 || matches(outer.element, DISABLED))) {
        each.dropped = true;
      } else if (coincide(outer.rect, each.rect)) {
        const innerWins = each.kind > outer.kind || (each.kind === 2 && matches(each.element, CONTROLS));
        (innerWins ? outer : each).dropped = true;
      }
      if (!each.dropped) outer.inner += 1;
    }
    // Who listens for many listens on their behalf.
    for (const each of candidates)
      if (each.kind === 1 && each.inner > 1 && getComputedStyle(each.element).cursor !== "pointer") each.dropped = true;
    return candidates.filter((each) => !each.dropped);
  };

  return {
    listen: (...elements) => elements.forEach((element) => listening.add(element)),

    // Elements are [tag, text, x, y, width, height]; their positions are what the other calls take. `frames`: positions of
    // frames whose documents are of another origin. `visited`: elements of any kind, and one more for
    // every LONG_TEXT characters.
    scan(most, budgetMs) {
      const visited = weight(document.documentElement ? rawText(document.documentElement).length : 0);
      const into = { all: [], by: new Map(), pointers: new Set(), lengths: new Map(), complete: true, visited, most };
      collect(document, whole(), spending(budgetMs), into);
      const kept = settleNesting(into.all, into.by);
      marked = new WeakSet(kept.map((each) => each.element));
      const how = (each) => tolerant(() => clickable(each.element, each.place)[2], 0);
      const reachable = kept.filter((each) => how(each) >= (each.kind === 1 ? 2 : 1));
      marked = new WeakSet(reachable.map((each) => each.element));
      found = reachable.map((each) => new WeakRef(each.element));
      const elements = reachable.map(({ element, rect }) => {
        const [left, top] = [Math.round(rect.left), Math.round(rect.top)];
        const [width, height] = [Math.round(rect.right) - left, Math.round(rect.bottom) - top];
        return [tagOf(element), tolerant(() => textOf(element), ""), left, top, Math.max(1, width), Math.max(1, height)];
      });
      const frames = reachable.flatMap(({ element }, position) => (FRAMES.has(localName(element)) ? [position] : []));
      return { complete: into.complete, visited: into.visited, elements, frames };
    },

    // Where the content of a frame lies: [left, top, scale, the left, top, right and bottom of what is seen of it].
    inside(position) {
      const frame = found[position]?.deref();
      const place = frame && isConnected(frame) && placeOf(documentOf(frame));
      if (!place) return null;
      const { left, top, scale, clip } = insideOf(frame, place);
      return [left, top, scale, clip.left, clip.top, clip.right, clip.bottom];
    },

    // Which points a click reaches the element at.
    reaches: (position, points) => points.map(([x, y]) => reached(found[position].deref(), x, y) > 0),

    scroll(position) {
      const element = found[position]?.deref();
      if (element) scrollTo(element, { block: "center", inline: "center", behavior: "instant" });
    },

    nodes: () => found.map((each) => each.deref() ?? null),

    // Until two frames were drawn, or will not be.
    painted: () =>
      new Promise((resolve) => {
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(true)));
        setTimeout(resolve, document.hidden ? HIDDEN_MS : PAINT_MS, false);
      }),

    // Where the element is reached now, brought into view where it was not: {x, y, scrolled}, or {problem}.
    locate(position) {
      const element = found[position]?.deref();
      if (!element || !isConnected(element)) return { problem: "is not in the page any more" };
      if (!isSeen(element)) return { problem: "is not shown any more" };
      if (matches(element, DISABLED)) return { problem: "is disabled now" };
      let place = placeOf(documentOf(element));
      if (!place) return { problem: "is not in the page any more" };
      let [x, y, how] = holds(place.clip, moved(rectOf(element), place)) ? clickable(element, place) : [0, 0, 0];
      const scrolled = !how;
      if (scrolled) {
        scrollTo(element, { block: "center", inline: "center", behavior: "instant" });
        place = placeOf(documentOf(element));
        [x, y, how] = clickable(element, place);
      }
      if (how) return { x, y, scrolled };
      const [point] = pointsOf(element, place);
      const hit = hitAt(...point);
      return { problem: hit ? `is covered by ${described(hit)}` : "cannot be brought into view" };
    },
  };
})();
