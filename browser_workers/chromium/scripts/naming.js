/*
  What a user would call an element, and where it is: through open shadow roots and frames of the same origin.

  One of the parts of a script for an isolated world. Every walk has a budget.
*/
const NAME_LENGTH = 60, MAX_WALKED = 2000, MAX_SHADOWS = 50, MAX_DOCUMENTS = 8;

const INTERACTIVE = "a[href],area[href],button,input,select,textarea,summary,label,option,video[controls],audio[controls]," +
  "[contenteditable=''],[contenteditable=true],[onclick],[tabindex]:not([tabindex='-1']),[role=button],[role=link]," +
  "[role=checkbox],[role=radio],[role=tab],[role=switch],[role=option],[role=menuitem],[role=menuitemcheckbox]," +
  "[role=menuitemradio],[role=combobox],[role=textbox],[role=searchbox],[role=slider],[role=spinbutton],[role=treeitem]";
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

// words ----------------------------------------------------------------------------------------------------------

/** The beginning of a text, never with half a character at its end or inside. */
const cut = (text, length) => text.slice(0, length).replace(/[\ud800-\udbff]$/, "").toWellFormed();

const short = (text, length) => {
  const line = text.slice(0, length * 8).replace(/\s+/g, " ").trim();
  return line.length > length ? cut(line, length - 1) + "…" : line.toWellFormed();
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
  if (role) return ROLES[role] || cut(role, 20);
  if (element.tagName === "INPUT") return INPUTS[element.type] || "text field";
  if (element.isContentEditable) return "text field";
  return TAGS[element.tagName] || `clickable ${cut(element.localName, 30)}`;
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
  if (target.tagName === "IFRAME" || target.tagName === "FRAME") return `frame of ${short(hostOf(target), NAME_LENGTH) || "another site"}`;
  for (let element = target, left = 40; element && left; element = above(element), left--) {
    if (element.matches(INTERACTIVE)) {
      return phraseOf(element.tagName === "LABEL" && element.control ? element.control : element);
    }
  }
  const name = cut(target.localName, 30);
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
      const box = element.getBoundingClientRect(), style = getComputedStyle(element);
      const scale = box.width / element.offsetWidth || 1;
      x = (x - box.left) / scale - element.clientLeft - parseFloat(style.paddingLeft);
      y = (y - box.top) / scale - element.clientTop - parseFloat(style.paddingTop);
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
