// What happens in a document, or in frames of its origin, that leaves no trace in its screenshot, kept until it is read: a list of
// [kind, detail].

const MAX_ASIDES = 8;
const MAX_ASIDE = 10000;
const MAX_OPTIONS = 60;
const WEB_ADDRESS = /^(https?|about|blob|data|javascript|file|filesystem|chrome-error):/i;
const asides = [];
const attended = new WeakSet();

const say = (kind, detail) => {
  if (asides.length < MAX_ASIDES) asides.push([kind, cut(String(detail), MAX_ASIDE)]);
};

// In a headless browser the list of a select opens where no screenshot shows it.
const onMouseDown = (event) => {
  const select = event.composedPath()[0];
  if (!event.isTrusted || select.tagName !== "SELECT" || select.multiple || select.size > 1 || select.disabled) return;
  const labels = [...select.options].slice(0, MAX_OPTIONS).map((option) => JSON.stringify(option.label.trim()));
  const rest = select.options.length - labels.length;
  say("options", labels.join(", ") + (rest > 0 ? ` and ${rest} more` : ""));
};

// Windows, downloads and choosers come a moment later, as events of the browser: said here, they can be waited for.
const onClick = (event) => {
  const path = event.composedPath();
  if (path[0].tagName === "INPUT" && path[0].type === "file" && !path[0].disabled) say("chooser", "");
  const link = path.find((node) => node.tagName === "A" && node.href);
  if (!link || event.defaultPrevented || !WEB_ADDRESS.test(link.href)) return;
  if (link.hasAttribute("download")) say("download", link.href);
  if (!/^(_self|_top|_parent)?$/i.test(link.target)) say("window", link.href);
};

const onCopy = (event) => {
  const set = event.clipboardData.getData("text/plain");
  const field = event.composedPath()[0];
  const inField = typeof field.value === "string" && field.selectionStart != null && field.type !== "password";
  const selection = event.currentTarget.getSelection();
  const selected = inField ? field.value.slice(field.selectionStart, field.selectionEnd) : String(selection);
  if (set || selected) say("copied", set || selected);
};

const onNavigate = (event) => {
  if (!WEB_ADDRESS.test(event.destination.url)) say("external", event.destination.url);
};

/** From now on what happens in this document is said. */
const attend = (owner) => {
  const view = owner.defaultView;
  if (!view || attended.has(owner)) return;
  attended.add(owner);
  view.addEventListener("beforeprint", () => say("print", ""));
  view.addEventListener("mousedown", onMouseDown, true);
  view.addEventListener("click", onClick);
  view.addEventListener("copy", onCopy);
  view.addEventListener("cut", onCopy);
  view.navigation?.addEventListener("navigate", onNavigate);
};
attend(document);
