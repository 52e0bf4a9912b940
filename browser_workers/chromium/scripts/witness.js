/*
  What an action reached and what it changed, seen from a world that the page's own scripts cannot reach.

  Evaluated once a document, in an isolated world. Nothing is watched but between `begin` and a few seconds after it. Every
  walk has a budget, so that neither a huge document nor a storm of mutations costs more than that.
  Values of password fields never leave the page.
*/
(() => {
  "use strict";
  const NAME_LENGTH = 60, VALUE_LENGTH = 80, MAX_FIELDS = 200, MAX_DOCUMENTS = 8, MAX_SHADOWS = 50, MAX_DIALOGS = 20;
  const MAX_WALKED = 2000, MAX_COUNTED = 1000, MAX_RECORDS_A_FRAME = 5000, MAX_KEPT = 500, MAX_PHRASES = 8;
  const MAX_ANIMATIONS = 50, WATCH_MS = 12000, LATE_FRAME_MS = 100, FRAME_MS = 17, ADDRESS_LENGTH = 2000;

  const INTERACTIVE = "a[href],area[href],button,input,select,textarea,summary,label,option,video[controls],audio[controls]," +
    "[contenteditable=''],[contenteditable=true],[onclick],[tabindex]:not([tabindex='-1']),[role=button],[role=link]," +
    "[role=checkbox],[role=radio],[role=tab],[role=switch],[role=option],[role=menuitem],[role=menuitemcheckbox]," +
    "[role=menuitemradio],[role=combobox],[role=textbox],[role=searchbox],[role=slider],[role=spinbutton],[role=treeitem]";
  const DIALOGS = "dialog[open],[role=dialog],[role=alertdialog],[aria-modal=true]";
  const UNSEEN = new Set(["SCRIPT", "STYLE", "LINK", "META", "TEMPLATE", "NOSCRIPT", "HEAD", "TITLE", "BASE"]);
  const INPUTS = {
    button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio button",
    password: "password field", range: "slider", file: "file field", color: "colour field", number: "number field",
    date: "date field", time: "time field", month: "date field", week: "date field", "datetime-local": "date field",
  };
  const TAGS = {
    A: "link", AREA: "link", BUTTON: "button", SELECT: "select", TEXTAREA: "text field", SUMMARY: "disclosure",
    LABEL: "label", OPTION: "option", VIDEO: "video", AUDIO: "audio",
  };
  const ROLES = { radio: "radio button", textbox: "text field", searchbox: "text field", menuitemcheckbox: "menu item",
    menuitemradio: "menu item", menuitem: "menu item", treeitem: "tree item", spinbutton: "number field" };
  const CHOICES = new Set(["checkbox", "radio"]);

  let action = null;

  // words ----------------------------------------------------------------------------------------------------------

  const short = (text, length) => {
    const line = text.slice(0, length * 8).replace(/\s+/g, " ").trim();
    return line.length > length ? line.slice(0, length - 1) + "…" : line;
  };

  /** The text in an element, as far as a name needs it. */
  const textOf = (element) => {
    const walker = element.ownerDocument.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let text = "";
    for (let left = 100; left && text.length < NAME_LENGTH * 2 && walker.nextNode(); left--) {
      const parent = walker.currentNode.parentElement;
      if (!parent || !UNSEEN.has(parent.tagName)) text += walker.currentNode.data.slice(0, NAME_LENGTH * 4) + " ";
    }
    return text;
  };

  const isText = (element) => element.tagName === "TEXTAREA" || element.isContentEditable ||
    (element.tagName === "INPUT" && !(element.type in INPUTS));
  const isField = (element) => element.tagName === "INPUT" || element.tagName === "TEXTAREA" || element.tagName === "SELECT";

  const kindOf = (element) => {
    const role = (element.getAttribute("role") || "").trim().toLowerCase();
    if (role) return ROLES[role] || role.slice(0, 20);
    if (element.tagName === "INPUT") return INPUTS[element.type] || "text field";
    if (element.isContentEditable) return "text field";
    return TAGS[element.tagName] || `clickable ${element.localName.slice(0, 30)}`;
  };

  const nameOf = (element) => {
    const labelled = (element.getAttribute("aria-labelledby") || "").split(/\s+/).slice(0, 4)
      .map((id) => id && element.getRootNode().getElementById?.(id)).filter(Boolean).map(textOf).join(" ");
    const labels = element.labels ? [...element.labels].slice(0, 2).map(textOf).join(" ") : "";
    const pressed = element.tagName === "INPUT" && INPUTS[element.type] === "button" ? element.value : "";
    const own = isField(element) || element.isContentEditable ? "" : textOf(element);
    const image = own.trim() ? "" : element.querySelector?.("img[alt],[aria-label],svg title");
    const found = [element.getAttribute("aria-label"), labelled, labels, pressed, own, element.getAttribute("placeholder"),
      element.getAttribute("alt"), element.getAttribute("title"),
      image && (image.getAttribute("alt") || image.getAttribute("aria-label") || image.textContent),
      isField(element) ? element.name : ""].find((text) => text && text.trim());
    return found ? short(found, NAME_LENGTH) : "";
  };

  const called = (kind, name) => name ? `${kind} "${name}"` : kind;

  const phraseOf = (element) => {
    const off = element.disabled || element.getAttribute("aria-disabled") === "true" ? "disabled " : "";
    return called(off + kindOf(element), nameOf(element));
  };

  const above = (node) => node.parentElement || node.getRootNode().host || null;

  /** What a user would say that this element belongs to. */
  const describe = (target) => {
    if (!target) return "";
    if (target.tagName === "IFRAME" || target.tagName === "FRAME") return `frame of ${hostOf(target) || "another site"}`;
    for (let element = target, left = 40; element && left; element = above(element), left--) {
      if (element.matches(INTERACTIVE)) {
        return phraseOf(element.tagName === "LABEL" && element.control ? element.control : element);
      }
    }
    const name = target.localName.slice(0, 30);
    if (getComputedStyle(target).cursor === "pointer") return called(`clickable ${name}`, short(textOf(target), NAME_LENGTH));
    return `nothing interactive (${name === "html" || name === "body" ? "the page itself" : name})`;
  };

  const hostOf = (frame) => {
    try {
      return new URL(frame.src, frame.baseURI).host;
    } catch {
      return "";
    }
  };

  // where ----------------------------------------------------------------------------------------------------------

  /** The document of a frame; null where it is of another origin. */
  const inside = (frame) => {
    try {
      return frame.contentDocument;
    } catch {
      return null;
    }
  };
  const isFrame = (element) => element.tagName === "IFRAME" || element.tagName === "FRAME";

  const deepestAt = (x, y) => {
    let root = document, found = null;
    for (let left = 20; left; left--) {
      const element = root.elementFromPoint(x, y);
      if (!element || element === found) break;
      found = element;
      if (element.shadowRoot) {
        root = element.shadowRoot;
      } else if (isFrame(element) && inside(element)) {
        const box = element.getBoundingClientRect();
        x -= box.left + element.clientLeft;
        y -= box.top + element.clientTop;
        root = inside(element);
      } else break;
    }
    return found;
  };

  const deepestFocus = () => {
    let root = document, found = null;
    for (let left = 20; root && left; left--) {
      const element = root.activeElement;
      if (!element || element === element.ownerDocument.body || element === element.ownerDocument.documentElement) break;
      found = element;
      root = element.shadowRoot || (isFrame(element) ? inside(element) : null);
    }
    return found;
  };

  /** Documents and open shadow roots that can be looked into, and whether that is all there is. */
  const survey = () => {
    const roots = [document];
    let complete = true, left = MAX_WALKED;
    for (let index = 0; index < roots.length; index++) {
      const root = roots[index];
      const owner = root.nodeType === Node.DOCUMENT_NODE ? root : root.ownerDocument;
      const walker = owner.createTreeWalker(root, NodeFilter.SHOW_ELEMENT);
      while (walker.nextNode()) {
        if (!left--) return { roots, complete: false };
        const element = walker.currentNode, tag = element.tagName;
        const inner = element.shadowRoot || (isFrame(element) ? inside(element) : null);
        if (inner && roots.length < MAX_SHADOWS + MAX_DOCUMENTS) roots.push(inner);
        else if (inner || isFrame(element) || tag === "CANVAS" || tag === "VIDEO" || tag === "OBJECT" || tag === "EMBED" ||
          element.localName.includes("-")) complete = false;
      }
    }
    return { roots, complete };
  };

  // before and after -------------------------------------------------------------------------------------------------

  const isSecret = (element) => element.tagName === "INPUT" && element.type === "password";
  const valueOf = (element) => CHOICES.has(element.type) ? element.checked
    : element.tagName === "SELECT" ? [...element.selectedOptions].slice(0, 5).map((option) => option.label).join(", ")
    : isField(element) ? element.value.slice(0, 10000) : textOf(element);

  const fieldsIn = (roots) => {
    const fields = new Map();
    for (const root of roots) {
      for (const element of root.querySelectorAll("input:not([type=hidden]),select,textarea")) {
        if (fields.size >= MAX_FIELDS) return fields;
        fields.set(element, { value: valueOf(element), secret: isSecret(element) });
      }
    }
    return fields;
  };

  const dialogsIn = (roots) => {
    const found = new Set();
    for (const root of roots) {
      for (const element of root.querySelectorAll(DIALOGS)) {
        if (found.size >= MAX_DIALOGS) return found;
        if (element.checkVisibility({ visibilityProperty: true })) found.add(element);
      }
    }
    return found;
  };

  const scrollable = (target) => {
    const places = new Map();
    const add = (element) => element && places.set(element, [element.scrollLeft, element.scrollTop]);
    add(document.scrollingElement);
    for (let element = target, left = 40; element && left; element = above(element), left--) {
      add(element);
      if (!above(element)) add(element.ownerDocument.scrollingElement);
    }
    return places;
  };

  const stop = () => {
    if (!action) return;
    clearTimeout(action.timer);
    action.observer.disconnect();
    removeEventListener("pointerdown", onPointer, true);
  };

  const observe = () => {
    const everything = { subtree: true, childList: true, characterData: true, attributes: true };
    for (const root of action.roots) action.observer.observe(root, everything);
    action.paused = false;
  };

  /** A bounded set; `more` once something was left out. */
  const bag = () => ({ nodes: new Set(), more: false });
  const keep = (into, node) => {
    if (into.nodes.size < MAX_KEPT) into.nodes.add(node);
    else into.more = true;
  };

  const keepAll = (nodes, elements) => {
    for (let index = 0; index < nodes.length && index < MAX_KEPT; index++) {
      if (nodes[index].nodeType === Node.ELEMENT_NODE) keep(elements, nodes[index]);
      else if (nodes[index].nodeType === Node.TEXT_NODE) keep(action.texts, nodes[index]);
    }
    elements.more ||= nodes.length > MAX_KEPT;
  };

  const onMutations = (records) => {
    const { added, removed, texts, altered } = action;
    for (const record of records.slice(0, MAX_RECORDS_A_FRAME)) {
      if (record.type === "attributes") keep(altered, record.target);
      else if (record.type === "characterData") keep(texts, record.target);
      keepAll(record.addedNodes, added);
      keepAll(record.removedNodes, removed);
    }
    if (records.length > MAX_RECORDS_A_FRAME) for (const each of [added, removed, texts, altered]) each.more = true;
    action.mutations += records.length;
    action.inFrame += records.length;
    if (action.inFrame > MAX_RECORDS_A_FRAME) {
      action.observer.disconnect();
      action.paused = true;
      for (const each of [added, removed, texts, altered]) each.more = true;
    }
  };

  /** The event's own word on its target; a page that swallows the event first leaves us with what was at the point before. */
  const onPointer = (event) => {
    const target = event.composedPath()[0];
    if (action && event.isTrusted && target instanceof Element) action.hit = isFrame(target) || target.shadowRoot
      ? describe(deepestAt(event.clientX, event.clientY) || target) : describe(target);
  };

  /** To be called before an input at (x, y), or by keyboard when x is null. Returns what it is going to reach. */
  const begin = (x, y) => {
    stop();
    action = null;
    try {
      return watch(x, y);
    } catch {
      return "";
    }
  };

  const watch = (x, y) => {
    const target = x === null ? deepestFocus() : deepestAt(x, y);
    const { roots, complete } = survey();
    action = {
      roots, complete, hit: describe(target), focus: deepestFocus(), fields: fieldsIn(roots), dialogs: dialogsIn(roots),
      scrolls: scrollable(target), editable: target && target.isContentEditable ? target : null,
      mutations: 0, inFrame: 0, paused: false,
      added: bag(), removed: bag(), texts: bag(), altered: bag(),
      observer: new MutationObserver(onMutations), timer: setTimeout(stop, WATCH_MS),
    };
    observe();
    addEventListener("pointerdown", onPointer, { capture: true, passive: true });
    return action.hit;
  };

  // what changed -----------------------------------------------------------------------------------------------------

  const fieldPhrase = (element, value, secret) => {
    const subject = called(kindOf(element), nameOf(element));
    if (secret || isSecret(element)) return `${subject} was ${value ? "filled in" : "emptied"}`;
    if (element.type === "radio") return value ? `${subject} selected` : "";
    if (element.type === "checkbox") return `${subject} ${value ? "checked" : "unchecked"}`;
    if (element.tagName === "SELECT") return `${subject} now shows "${short(value, VALUE_LENGTH)}"`;
    return value ? `${subject.replace(/^text field/, "field")} now holds "${short(value, VALUE_LENGTH)}"`
      : `${subject.replace(/^text field/, "field")} is now empty`;
  };

  const fieldPhrases = () => {
    const phrases = [];
    for (const [element, before] of action.fields) {
      const value = valueOf(element);
      if (element.isConnected && value !== before.value) phrases.push(fieldPhrase(element, value, before.secret));
    }
    const focus = deepestFocus();
    if (focus && isText(focus) && isField(focus) && !action.fields.has(focus) && focus.value) {
      phrases.push(fieldPhrase(focus, valueOf(focus), false));
    }
    if (focus && focus.isContentEditable && [...action.texts.nodes].some((node) => focus.contains(node))) {
      phrases.push(fieldPhrase(focus, textOf(focus).trim(), false));
    }
    return phrases;
  };

  const scrollPhrases = () => {
    const phrases = [];
    for (const [element, [left, top]] of action.scrolls) {
      if (!element.isConnected) continue;
      const isPage = element === element.ownerDocument.scrollingElement;
      const where = isPage ? "" : `part of the page (${element.localName.slice(0, 30)}) `;
      const percent = (at, whole, shown) => Math.max(0, Math.min(100, Math.round(100 * at / Math.max(1, whole - shown))));
      const { scrollTop, scrollHeight, clientHeight, scrollLeft, scrollWidth, clientWidth } = element;
      if (Math.abs(scrollTop - top) >= 1) phrases.push(`${where}scrolled to ${percent(scrollTop, scrollHeight, clientHeight)} %`);
      if (Math.abs(scrollLeft - left) >= 1) {
        phrases.push(`${where}scrolled sideways to ${percent(Math.abs(scrollLeft), scrollWidth, clientWidth)} %`);
      }
    }
    return phrases;
  };

  const dialogPhrases = (roots) => {
    const now = dialogsIn(roots), phrases = [];
    for (const element of now) {
      if (!action.dialogs.has(element)) phrases.push(`${called("dialog", dialogName(element))} appeared`);
    }
    for (const element of action.dialogs) {
      if (!now.has(element)) phrases.push(`${called("dialog", dialogName(element))} closed`);
    }
    return phrases;
  };
  const dialogName = (element) => {
    const named = element.getAttribute("aria-label") || element.getAttribute("aria-labelledby");
    const heading = named ? null : element.querySelector("h1,h2,h3,h4,[role=heading]");
    return heading ? short(textOf(heading), NAME_LENGTH) : nameOf(element);
  };

  const isBelow = (node, tops) => {
    for (let element = above(node), left = 40; element && left; element = above(element), left--) {
      if (tops.has(element)) return true;
    }
    return false;
  };

  /** How many elements there are at and below the roots; one more than the budget when it is used up. */
  const count = (tops, isThere) => {
    let total = 0;
    for (const top of tops) {
      if (top.isConnected !== isThere || UNSEEN.has(top.tagName)) continue;
      if (isBelow(top, tops)) continue;
      const walker = top.ownerDocument.createTreeWalker(top, NodeFilter.SHOW_ELEMENT);
      do {
        if (++total > MAX_COUNTED) return total;
      } while (walker.nextNode());
    }
    return total;
  };
  const amount = (number, more, noun) => {
    const least = more || number > MAX_COUNTED ? "at least " : "";
    return `${least}${Math.min(number, MAX_COUNTED)} ${noun}${number === 1 ? " was" : "s were"}`;
  };

  const isShown = (node) => node.isConnected && !UNSEEN.has((node.parentElement || node).tagName);

  const textPhrases = () => {
    const texts = [...action.texts.nodes].filter((node) => isShown(node) && node.data.trim() && !node.parentElement?.isContentEditable);
    const parents = [...new Set(texts.map((node) => node.parentElement).filter(Boolean))];
    if (parents.length > 2 || action.texts.more) return [`${amount(parents.length, action.texts.more, "text")} changed`];
    return parents.map((parent) => `text changed to "${short(textOf(parent), VALUE_LENGTH)}"`);
  };

  const elementPhrases = (isFirst) => {
    const added = count(action.added.nodes, true), removed = count(action.removed.nodes, false);
    const phrases = [];
    if (added) phrases.push(`${amount(added, action.added.more, "element")} added`);
    else phrases.push(...textPhrases());
    if (removed) phrases.push(`${amount(removed, action.removed.more, "element")} removed`);
    const altered = [...action.altered.nodes].filter((node) => node.isConnected && !UNSEEN.has(node.tagName)).length;
    if (altered && isFirst && !phrases.length) phrases.push(`${amount(altered, action.altered.more, "element")} altered in look or state`);
    return phrases;
  };

  const report = () => {
    try {
      return told();
    } catch {
      // A page that cannot be described is not worth an episode.
      return [];
    }
  };

  const told = () => {
    onMutations(action.observer.takeRecords());
    const phrases = fieldPhrases(), focus = deepestFocus();
    phrases.push(...dialogPhrases(survey().roots));
    if (focus && focus !== action.focus && phraseOf(focus) !== action.hit) phrases.push(`focus moved to ${phraseOf(focus)}`);
    phrases.push(...scrollPhrases());
    phrases.push(...elementPhrases(!phrases.length));
    const said = phrases.filter(Boolean).slice(0, MAX_PHRASES);
    const nothing = !said.length && !action.mutations && focus === action.focus && action.complete;
    return nothing ? ["nothing changed in the page's document"] : said;
  };

  // quiet ------------------------------------------------------------------------------------------------------------

  /** Returns after the next frame was painted; without one where none comes. */
  const frame = () => new Promise((resolve) => {
    const timer = setTimeout(resolve, document.hidden ? FRAME_MS : LATE_FRAME_MS);
    if (!document.hidden) {
      requestAnimationFrame(() => {
        clearTimeout(timer);
        setTimeout(resolve, 0);
      });
    }
  });

  /** Milliseconds until the last of the animations is over that will be within `cap` milliseconds. */
  const animatedFor = (cap) => {
    let longest = 0;
    for (const animation of document.getAnimations().slice(0, MAX_ANIMATIONS)) {
      const end = animation.effect?.getComputedTiming().endTime;
      if (animation.playState !== "running" || typeof end !== "number" || !Number.isFinite(end)) continue;
      const left = (end - (Number(animation.currentTime) || 0)) / (Math.abs(animation.playbackRate) || 1);
      if (left <= cap) longest = Math.max(longest, left);
    }
    return longest;
  };

  const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

  const state = () => [location.href.slice(0, ADDRESS_LENGTH), document.title.slice(0, ADDRESS_LENGTH),
    performance.getEntriesByType("navigation")[0]?.responseStatus || 0, action ? action.hit : "", action ? report() : null];

  /** `state`, once two frames were painted in which nothing changed, nothing moves any more and `least` ms are over; in any
      case after `least + cap` ms. */
  const settle = async (least, cap) => {
    const enough = performance.now() + least, until = enough + cap;
    let seen, moving;
    do {
      seen = action?.mutations;
      if (action) {
        action.inFrame = 0;
        if (action.paused) observe();
      }
      await frame();
      moving = animatedFor(until - performance.now());
      if (moving > 0) await pause(moving);
      if (performance.now() < enough) await pause(enough - performance.now());
      await frame();
    } while (performance.now() < until && (seen !== action?.mutations || action?.paused || moving > 0));
    return state();
  };

  return { begin, state, settle };
})()
