/*
  What in the document may say that it keeps its visitor out; what it means is decided elsewhere.

  One of the parts of a script for an isolated world.
*/
const MAX_BARRIER_TEXT = 2000, MAX_SCRIPTS = 200, MAX_FRAMES = 50, MAX_ADDRESS = 500;
const FIELDS = 'input:not([type=hidden], [type=submit], [type=button], [type=image], [type=reset]), textarea, select';
const MAX_LAID_OUT = 20000;
let barrierText = "";

/** Share of the viewport that a visitor sees an element cover. */
const shareOf = (element) => {
  if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return 0;
  const box = element.getBoundingClientRect();
  const width = Math.min(box.right, innerWidth) - Math.max(box.left, 0);
  const height = Math.min(box.bottom, innerHeight) - Math.max(box.top, 0);
  return width > 0 && height > 0 ? (width * height) / (innerWidth * innerHeight) : 0;
};

const isLaidOut = (element) => element.checkVisibility({ visibilityProperty: true }) && element.offsetWidth > 0;

const first = (list, most) => [...list].slice(0, most);

/** The text of a large document is that of the first look at it: to lay all of it out costs dearly. */
const barriers = (selectors) => {
  if (barrierText.length < MAX_LAID_OUT) barrierText = (document.body?.innerText ?? "").trim();
  return {
    url: cut(location.href, ADDRESS_LENGTH),
    title: cut(document.title, ADDRESS_LENGTH),
    text: cut(barrierText, MAX_BARRIER_TEXT),
    num_characters: barrierText.length,
    num_fields: first(document.querySelectorAll(FIELDS), MAX_FRAMES).filter(isLaidOut).length,
    scripts: first(document.scripts, MAX_SCRIPTS).map((script) => cut(script.src, MAX_ADDRESS)).filter(Boolean),
    frames: first(document.querySelectorAll("iframe[src]"), MAX_FRAMES)
      .map((frame) => ({ url: cut(frame.src, MAX_ADDRESS), share: shareOf(frame) })).filter(({ share }) => share > 0),
    elements: selectors.filter((selector) => first(document.querySelectorAll(selector), MAX_FRAMES)
      .some((element) => shareOf(element) > 0)),
  };
};
