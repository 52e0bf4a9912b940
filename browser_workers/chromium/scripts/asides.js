// Runs in every document before its own scripts. Keeps what happens in it that leaves no trace in the picture, until it is read:
// a list of [kind, detail] under a symbol of the top window. Bounds the dialogs and windows that may follow one input.
(() => {
  const KEY = Symbol.for("millrace.asides");
  const MAX_ASIDES = 8;
  const MAX_TEXT = 10000;
  const MAX_OPTIONS = 60;
  const WEB = /^(https?|about|blob|data|javascript|file|filesystem|chrome-error):/i;
  if (window[KEY]) return;
  let asides = [];
  Object.defineProperty(window, KEY, { value: asides });
  try {
    if (window.top[KEY]) asides = window.top[KEY];
  } catch {
    // A frame of another site keeps its own, which nobody reads.
  }

  const say = (kind, detail) => {
    if (asides.length < MAX_ASIDES) asides.push([kind, String(detail).slice(0, MAX_TEXT)]);
  };

  // V8 ends a loop only every few hundred turns: one whose turns are dialogs or windows has to be made quick to be ended at all.
  const MAX_DIALOGS = 16;
  const MAX_WINDOWS = 8;
  const numCalls = { dialogs: 0, windows: 0 };
  const bound = (name, what, limit, otherwise) => {
    const native = window[name];
    if (typeof native !== "function") return;
    window[name] = new Proxy(native, {
      apply(_, self, given) {
        numCalls[what] += 1;
        if (numCalls[what] <= limit) return Reflect.apply(native, self, given);
        if (numCalls[what] === limit + 1) say("flood", `${limit} ${what}`);
        return otherwise;
      },
    });
  };
  bound("alert", "dialogs", MAX_DIALOGS, undefined);
  bound("confirm", "dialogs", MAX_DIALOGS, false);
  bound("prompt", "dialogs", MAX_DIALOGS, null);
  bound("open", "windows", MAX_WINDOWS, null);
  const begin = (event) => {
    if (event.isTrusted) numCalls.dialogs = numCalls.windows = 0;
  };
  addEventListener("mousedown", begin, true);
  addEventListener("keydown", begin, true);

  addEventListener("beforeprint", () => say("print", ""));

  // In a headless browser the list of a select opens where no picture shows it.
  addEventListener("mousedown", (event) => {
    const select = event.composedPath()[0];
    if (!event.isTrusted || select.tagName !== "SELECT" || select.multiple || select.size > 1 || select.disabled) return;
    const labels = [...select.options].slice(0, MAX_OPTIONS).map((option) => JSON.stringify(option.label.trim()));
    const rest = select.options.length - labels.length;
    say("options", labels.join(", ") + (rest > 0 ? ` and ${rest} more` : ""));
  }, true);

  const copied = (event) => {
    const set = event.clipboardData.getData("text/plain");
    const field = event.composedPath()[0];
    const inField = typeof field.value === "string" && field.selectionStart != null && field.type !== "password";
    const selected = inField ? field.value.slice(field.selectionStart, field.selectionEnd) : String(getSelection());
    if (set || selected) say("copied", set || selected);
  };
  addEventListener("copy", copied);
  addEventListener("cut", copied);

  if (window.navigation) {
    navigation.addEventListener("navigate", (event) => {
      if (!WEB.test(event.destination.url)) say("external", event.destination.url);
    });
  }

  if (window === window.top) {
    const status = performance.getEntriesByType("navigation")[0]?.responseStatus;
    if (status === 401 || status === 407) say("credentials", status);
  }
})();
