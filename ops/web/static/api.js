// What pages ask the server for. Every failure is an error with a sentence to be shown.

export async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Error("Nothing answers: is the command that serves this page still running?");
  }
  if (response.status === 401 && location.pathname !== "/login") {
    location.assign("/login");
    return new Promise(() => {});
  }
  const found = await response.json().catch(() => null);
  if (!response.ok) throw new Error(found?.error ?? `The answer was ${response.status}.`);
  return found;
}

/**
 * Calls `heard` with the revision whenever episodes or judgements came, until what it returns is called; a page that
 * nobody looks at listens to nothing.
 */
export function listen(heard) {
  let source = null;
  let over = false;
  const follow = () => {
    if (document.hidden || over) {
      source?.close();
      source = null;
    } else if (source === null) {
      source = new EventSource("/api/events");
      source.addEventListener("episodes", (event) => heard(Number(event.data)));
    }
  };
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", () => source?.close());
  follow();
  return () => {
    over = true;
    follow();
  };
}
