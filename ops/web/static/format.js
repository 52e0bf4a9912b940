// Values as people read them.

export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}\u00a0%`;
export const whole = (number) => number.toLocaleString("en");
export const counted = (number, noun) => `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;
export const worth = (reward) => (reward === null || reward === undefined ? "–" : String(Number(reward.toFixed(4))));
export const words = (name) => name.replaceAll("_", " ");

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.0005) return "0 s";
  if (value < 1) return `${Math.round(1000 * value)} ms`;
  if (value < 90) return `${value.toFixed(1)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

/** How long something has lasted, for a word that ticks. */
export function age(value) {
  const whole = Math.max(0, Math.round(value));
  if (whole < 120) return `${whole}\u00a0s`;
  return whole < 7200 ? `${Math.round(whole / 60)}\u00a0min` : `${(whole / 3600).toFixed(1)}\u00a0h`;
}

/** About how long something takes. */
export function duration(value) {
  if (value < 90) return `${Math.round(value)}\u00a0s`;
  if (value < 5400) return `${Math.round(value / 60)}\u00a0min`;
  return value < 172800 ? `${(value / 3600).toFixed(1)}\u00a0h` : `${(value / 86400).toFixed(1)}\u00a0days`;
}

/** A figure that may be far below one thousandth. */
export function small(value) {
  if (value === 0) return "0";
  return Math.abs(value) < 0.001 ? value.toExponential(1) : value.toFixed(4);
}

export function moment(unix) {
  if (!unix) return "–";
  const at = new Date(1000 * unix);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export const versions = (first, last) => (first === last ? String(first) : `${first}–${last}`);

/** The last part of an episode's name: its number among those of its group. */
export const member = (episode) => episode.slice(episode.lastIndexOf("-") + 1);

/** The query for all episodes of a task, whose name is its own within a split. */
export const attemptsOf = ({ task, split }) => String(new URLSearchParams({ task, split }));
