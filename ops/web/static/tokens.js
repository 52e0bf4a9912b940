// Sampled tokens, coloured by how likely each was under the sampler's own distribution.

import { h } from "./dom.js";

const LEAST_LIKELY = 5;
const LEVELS = [0.9, 0.5, 0.2, 0.05];

/** 0 for what was all but certain, up to 4 for what was hardly expected. */
const level = (logprob) => LEVELS.filter((least) => Math.exp(logprob) < least).length;

export function tokenView(answer) {
  const { tokens, token_texts: texts, logprobs } = answer;
  if (!tokens.length) return h("p", { class: "soft" }, "The endpoint that answered gives no tokens.");
  const told = h(
    "p",
    { class: "told", "aria-live": "polite" },
    `Point at a token for its numbers. ${summary(logprobs)}`,
  );
  const list = h("p", { class: texts.length ? "tokens" : "tokens ids" });
  const starts = new Map(answer.versions.length > 1 ? answer.versions.map((span) => [span.start, span.version]) : []);
  for (const [index, token] of tokens.entries()) {
    if (starts.has(index))
      list.append(
        h(
          "span",
          { class: "span-start", title: "sampled by this policy version from here on" },
          `v${starts.get(index)}`,
        ),
      );
    const logprob = logprobs[index];
    list.append(
      h(
        "span",
        { class: `token p${logprob === undefined || logprob === null ? "x" : level(logprob)}`, "data-index": index },
        texts.length ? shown(texts[index]) : `${token} `,
      ),
    );
  }
  const tell = (event) => {
    const index = event.target.dataset?.index;
    if (index !== undefined) told.textContent = sentence(answer, Number(index));
  };
  list.addEventListener("pointerover", tell);
  list.addEventListener("click", tell);
  return [
    texts.length
      ? null
      : h("p", { class: "soft" }, "There is no tokenizer at policy_config.base_model here, so tokens are numbers."),
    list,
    told,
    legend(),
    leastLikely(answer),
  ];
}

/** White space that would not be seen is drawn. */
const shown = (text) => (text === "" ? "␣" : text.replaceAll("\n", "↵\n"));

function summary(logprobs) {
  if (!logprobs.length) return "There are no log-probabilities.";
  const mean = logprobs.reduce((sum, each) => sum + each, 0) / logprobs.length;
  return `Mean log-probability ${mean.toFixed(3)}, over ${logprobs.length} tokens.`;
}

function sentence({ tokens, token_texts: texts, logprobs, versions }, index) {
  const logprob = logprobs[index];
  const version = versions.find((span) => span.start <= index && index < span.end)?.version;
  return [
    `Token ${index + 1}${texts.length ? ` ${JSON.stringify(texts[index])}` : ""}: id ${tokens[index]}`,
    logprob === undefined || logprob === null
      ? null
      : `probability ${Math.exp(logprob).toPrecision(3)}, log-probability ${logprob.toFixed(4)}`,
    version === undefined ? null : `version ${version}`,
  ]
    .filter(Boolean)
    .join(", ");
}

function legend() {
  const names = ["over 90 %", "over 50 %", "over 20 %", "over 5 %", "less"];
  return h(
    "p",
    { class: "legend" },
    "probability: ",
    names.map((name, index) => [h("span", { class: `token p${index}` }, name), " "]),
  );
}

function leastLikely({ tokens, token_texts: texts, logprobs }) {
  const rows = [...logprobs.entries()]
    .filter(([, logprob]) => logprob !== null)
    .sort(([, left], [, right]) => left - right)
    .slice(0, LEAST_LIKELY);
  if (!rows.length) return null;
  return h(
    "table",
    { class: "small" },
    h("caption", {}, "The least likely tokens"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["token", "place", "probability", "log-probability"].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map(([index, logprob]) =>
        h(
          "tr",
          {},
          h("td", {}, h("code", {}, texts.length ? JSON.stringify(texts[index]) : tokens[index])),
          h("td", {}, index + 1),
          h("td", {}, Math.exp(logprob).toPrecision(3)),
          h("td", {}, logprob.toFixed(4)),
        ),
      ),
    ),
  );
}
