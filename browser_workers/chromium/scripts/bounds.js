// Runs in every document before its own scripts. Bounds the dialogs and windows that may follow one input: V8 ends a loop only every
// few hundred turns, so that one whose turns are dialogs or windows has to be made quick to be ended at all. What a dialog says is
// bounded as well, before it leaves the page.
(() => {
  const LONGEST = 2000;
  const { apply } = Reflect;
  const { slice } = String.prototype;
  const said = (text) => (text === undefined ? text : apply(slice, `${text}`, [0, LONGEST]));
  const limits = { alert: [16, undefined], confirm: [16, false], prompt: [16, null], open: [8, null] };
  let numCalls = {};
  for (const [name, [limit, otherwise]] of Object.entries(limits)) {
    const native = window[name];
    if (typeof native !== "function") continue;
    window[name] = new Proxy(native, {
      apply(_, self, given) {
        numCalls[name] = (numCalls[name] ?? 0) + 1;
        if (numCalls[name] > limit) return otherwise;
        for (let i = 0; name !== "open" && i < given.length; i++) given[i] = said(given[i]);
        return apply(native, self, given);
      },
    });
  }
  const begin = (event) => {
    if (event.isTrusted) numCalls = {};
  };
  addEventListener("mousedown", begin, true);
  addEventListener("keydown", begin, true);
})();
