// What happens in a document that leaves no trace in its picture, kept until it is read: a list of [kind, detail].

const MAX_ASIDES = 8;
const MAX_ASIDE = 10000;
const MAX_OPTIONS = 60;
const WEB_ADDRESS = /^(https?|about|blob|data|javascript|file|filesystem|chrome-error):/i;
const asides = [];

const say = (kind, detail) => {
  if (asides.length < MAX_ASIDES) asides.push([kind, String(detail).slice(0, MAX_ASIDE)]);
};

addEventListener("beforeprint", () => say("print", ""));

// In a headless browser the list of a select opens where no picture shows it.
addEventListener("mousedown", (event) => {
  const select = event.composedPath()[0];
  if (!event.isTrusted || select.tagName !== "SELECT" || select.multiple || select.size > 1 || select.disabled) return;
  const labels = [...select.options].slice(0, MAX_OPTIONS).map((option) => JSON.stringify(option.label.trim()));
  const rest = select.options.length - labels.length;
  say("options", labels.join(", ") + (rest > 0 ? ` and ${rest} more` : ""));
}, true);

// Windows and choosers come a moment later, as events of the browser: said here, they can be waited for.
addEventListener("click", (event) => {
  const path = event.composedPath();
  if (path[0].tagName === "INPUT" && path[0].type === "file" && !path[0].disabled) say("chooser", "");
  const link = path.find((node) => node.tagName === "A" && node.href);
  if (link && !event.defaultPrevented && WEB_ADDRESS.test(link.href) && !/^(_self|_top|_parent)?$/i.test(link.target)) {
    say("window", link.href);
  }
});

const onCopy = (event) => {
  const set = event.clipboardData.getData("text/plain");
  const field = event.composedPath()[0];
  const inField = typeof field.value === "string" && field.selectionStart != null && field.type !== "password";
  const selected = inField ? field.value.slice(field.selectionStart, field.selectionEnd) : String(getSelection());
  if (set || selected) say("copied", set || selected);
};
addEventListener("copy", onCopy);
addEventListener("cut", onCopy);

globalThis.navigation?.addEventListener("navigate", (event) => {
  if (!WEB_ADDRESS.test(event.destination.url)) say("external", event.destination.url);
});
