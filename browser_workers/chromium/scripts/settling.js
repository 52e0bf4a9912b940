/*
  When a page has come to rest: frames were painted in which nothing changed, and nothing that ends by itself still moves.

  One of the parts of a script for an isolated world. Every wait has a cap.
*/
const MAX_ANIMATIONS = 50, LATE_FRAME_MS = 100, RESTLESS_MS = 300, FRAME_MS = 17, ADDRESS_LENGTH = 2000;

/** The page had not come to rest when it was last waited for: it may never. */
let restless = false;

/** Returns after the next frame was painted; without one where none comes within `late` ms, or the page is hidden. */
const frame = (late) => new Promise((resolve) => {
  const timer = setTimeout(resolve, document.hidden ? FRAME_MS : late);
  if (!document.hidden) {
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve, 0);
    });
  }
});

/** Milliseconds until the last of the animations is over that will be within `cap` milliseconds. */
const animatedFor = (cap) => {
  let longest = 0;
  for (const animation of document.getAnimations().slice(0, MAX_ANIMATIONS)) {
    const end = animation.effect?.getComputedTiming().endTime;
    if (animation.playState !== "running" || typeof end !== "number" || !Number.isFinite(end)) continue;
    const left = (end - (Number(animation.currentTime) || 0)) / (Math.abs(animation.playbackRate) || 1);
    if (left <= cap) longest = Math.max(longest, left);
  }
  return longest;
};

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** The document as it is; with `tells`, what the action under way came to. */
const state = (tells) => [cut(location.href, ADDRESS_LENGTH), cut(document.title, ADDRESS_LENGTH),
  performance.getEntriesByType("navigation")[0]?.responseStatus || 0, tells && action ? action.hit : "",
  tells && action ? report() : null, asides.splice(0)];

/** `state`, once two frames were painted in which nothing changed, nothing moves any more and `least` ms are over; in any
    case after `least + cap` ms. Where the page was `scrolled`, a frame that comes late is not given up before: without it
    the document does not know yet. */
const settle = async (tells, least, cap, scrolled) => {
  const enough = performance.now() + least, until = enough + (restless ? RESTLESS_MS : cap);
  const late = () => Math.max(LATE_FRAME_MS, scrolled ? enough + cap - performance.now() : 0);
  let seen, moving, changing;
  do {
    seen = action?.mutations;
    if (action) {
      action.inFrame = 0;
      if (action.paused) observe();
    }
    await frame(late());
    moving = animatedFor(until - performance.now());
    if (moving > 0) await pause(moving);
    if (performance.now() < enough) await pause(enough - performance.now());
    await frame(late());
    changing = seen !== action?.mutations || action?.paused || moving > 0;
  } while (changing && performance.now() < until);
  restless = changing;
  return state(tells);
};
