// What a cell looks like: a letter and a class for its phase or verdict; the same letters as in the terminal.

export const PHASES = [
  ["queued", "q", "admitted; no browser worker has taken it"],
  ["opening", "O", "a browser worker has it, and there is no screenshot yet"],
  ["deciding", "D", "an observation waits for the policy"],
  ["acting", "A", "the answer is carried out, and the page observed again"],
  ["judging", "J", "ended; waits for its judgement"],
  ["ended", "e", "judged: S success, F failure, x excluded, ! no verdict"],
];
const LETTERS = { ...Object.fromEntries(PHASES), success: "S", failure: "F", excluded: "x", error: "!" };
const PLAYED = new Set(["opening", "deciding", "acting"]);
/** Seconds at one phase after which an episode that is played counts as slow. */
export const SLOW_S = 60;

export const kind = ({ phase, verdict }) => (phase === "ended" && verdict ? verdict : phase);

export function mark(cell) {
  const letter = LETTERS[kind(cell)] ?? "?";
  return cell.phase === "queued" ? letter : `${letter}${cell.step + 1}`;
}

export const isSlow = (cell, now) => PLAYED.has(cell.phase) && now - cell.since > SLOW_S;

export function phaseText(cell) {
  const step =
    cell.phase === "queued" || cell.phase === "opening"
      ? ""
      : ` at step ${cell.step + 1}${cell.max_steps ? ` of ${cell.max_steps}` : ""}`;
  return `${kind(cell)}${step}`;
}
