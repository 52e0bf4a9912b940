/*
  Nothing is asked of a document before there is anything of it: the first of one that was only just shown is still to come.

  One of the parts of a script for an isolated world. The wait has a cap, and there is one in a document.
*/
const BEGINS_MS = 8000;
let waitsToBegin = true;

const hasBegun = () => document.body || document.readyState === "complete" || !waitsToBegin;

/** Once the document has a body, or never gets one. */
const begun = () => new Promise((resolve) => {
  const end = () => {
    waitsToBegin = false;
    observer.disconnect();
    document.removeEventListener("readystatechange", look);
    resolve();
  };
  const look = () => { if (hasBegun()) end(); };
  const observer = new MutationObserver(look);
  observer.observe(document, { subtree: true, childList: true });
  document.addEventListener("readystatechange", look);
  setTimeout(end, BEGINS_MS);
});

/** The same call, of a document that has begun. */
const onceBegun = (call) => (...given) => hasBegun() ? call(...given) : begun().then(() => call(...given));
