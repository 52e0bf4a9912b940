/*
  What an action reached and what it changed, seen from a world that the page's own scripts cannot reach.

  One of the parts of a script for an isolated world. Nothing is watched but between `begin` and a few seconds after it, and every
  walk has a budget, so that neither a huge document nor a storm of mutations costs more than that.
  Values of password fields never leave the page.
*/
const VALUE_LENGTH = 80, MAX_FIELDS = 200, MAX_DIALOGS = 20, MAX_COUNTED = 1000, MAX_RECORDS_A_FRAME = 5000, MAX_KEPT = 500;
const MAX_PHRASES = 8, WATCH_MS = 12000;
const DIALOGS = "dialog[open],[role=dialog],[role=alertdialog],[aria-modal=true]";
const CHOICES = new Set(["checkbox", "radio"]);

let action = null;

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

/** Whatever happens from now on is not seen. */
const giveUp = () => {
  stop();
  action.complete = false;
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
  for (const root of roots) if (root.nodeType === Node.DOCUMENT_NODE) attend(root);
  action = {
    roots, complete, hit: describe(target), focus: deepestFocus(), fields: fieldsIn(roots), dialogs: dialogsIn(roots),
    scrolls: scrollable(target), editable: target && target.isContentEditable ? target : null,
    mutations: 0, inFrame: 0, paused: false,
    added: bag(), removed: bag(), texts: bag(), altered: bag(),
    observer: new MutationObserver(onMutations), timer: setTimeout(giveUp, WATCH_MS),
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
    const where = isPage ? "" : `part of the page (${cut(element.localName, 30)}) `;
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
  const texts = [...action.texts.nodes].filter((node) => isShown(node) && node.data.trim() &&
    !node.parentElement?.isContentEditable);
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
  if (altered && isFirst && !phrases.length) {
    phrases.push(`${amount(altered, action.altered.more, "element")} altered in look or state`);
  }
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
