// What the server tells each second, put together: everything first, then differences. Comes back by itself.

const OLD_S = 5;
const AGAIN_MS = 2000;

/**
 * `updated(run, change)` after every update: `run` is `{ missing, sections, cells, now() }`, with cells by episode; `change` says
 * which sections, cells and gone episodes are new. `aged(seconds)` every second: the age of the news, null while they are fresh.
 */
export function followRun({ updated, aged }) {
  const run = { missing: [], sections: {}, cells: new Map(), now: () => at + (performance.now() - heardAt) / 1000 };
  let at = Date.now() / 1000;
  let heardAt = performance.now();
  let source = null;

  function take(event, isWhole) {
    const told = JSON.parse(event.data);
    const gone = isWhole ? [...run.cells.keys()].filter((name) => !(name in told.cells)) : told.gone;
    at = told.at;
    heardAt = performance.now();
    run.missing = told.missing;
    Object.assign(run.sections, told.sections);
    for (const name of gone) run.cells.delete(name);
    for (const [name, cell] of Object.entries(told.cells)) run.cells.set(name, cell);
    updated(run, { sections: told.sections, cells: told.cells, gone });
    aged(null);
  }

  function connect() {
    if (source !== null || document.hidden) return;
    source = new EventSource("/api/live");
    source.addEventListener("whole", (event) => take(event, true));
    source.addEventListener("update", (event) => take(event, false));
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return; // it asks again by itself
      disconnect();
      setTimeout(signIn, AGAIN_MS);
    });
  }

  /** A server that came back may ask for its token. */
  async function signIn() {
    const stop = new AbortController();
    const answer = await fetch("/api/live", { signal: stop.signal }).catch(() => null);
    stop.abort();
    if (answer?.status === 401) location.assign("/login");
    else connect();
  }

  function disconnect() {
    source?.close();
    source = null;
  }

  // A page that nobody looks at listens to nothing.
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", connect);
  setInterval(() => {
    const age = (performance.now() - heardAt) / 1000;
    aged(age > OLD_S ? age : null);
  }, 1000);
  connect();
  return run;
}
