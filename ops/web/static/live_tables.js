// Workers, queues and streams as tables that change a word at a time.

import { h, show } from "./dom.js";
import { age, percent, whole, words } from "./format.js";

/** A table whose rows are kept by key: `set([{ key, tone, cells }])` touches only the words that changed. */
function keyedTable(label, columns, empty) {
  const rows = new Map();
  const body = h("tbody");
  const none = h("p", { class: "soft" }, empty);
  const table = h(
    "table",
    { class: "live-table", "aria-label": label },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        columns.map(([name, tone]) => h("th", { scope: "col", class: tone }, name)),
      ),
    ),
    body,
  );
  return {
    element: [none, h("div", { class: "scrolled", tabindex: "0" }, table)],
    set(wanted) {
      none.hidden = wanted.length > 0;
      table.hidden = wanted.length === 0;
      const gone = new Set(rows.keys());
      let previous = null;
      for (const { key, tone, cells } of wanted) {
        gone.delete(key);
        let row = rows.get(key);
        if (row === undefined) {
          row = h(
            "tr",
            {},
            columns.map(([name, each]) => h("td", { class: each, "data-name": name }, "")),
          );
          rows.set(key, row);
        }
        const place = previous ? previous.nextSibling : body.firstChild;
        if (row !== place) body.insertBefore(row, place);
        if (row.className !== tone) row.className = tone;
        for (const [index, text] of cells.entries()) {
          const cell = row.children[index];
          if (cell.textContent !== text) cell.textContent = text;
        }
        previous = row;
      }
      for (const key of gone) {
        rows.get(key).remove();
        rows.delete(key);
      }
    },
  };
}

/** What is no number comes as null. */
function short(value) {
  if (value === null) return "–";
  return Number.isInteger(value) ? whole(value) : String(Number(value.toPrecision(3)));
}

/** The metrics of a role that say most, in this order; then all others. */
const FIRST = {
  feeder: ["running", "admitted", "accepted", "limit", "version", "success"],
  browser: ["active", "slots", "episodes", "failures", "steps_taken"],
  policy: ["running", "slots", "tokens_per_s", "answered", "version", "unparsed_share"],
  judge: ["busy", "slots", "success", "failure", "error", "calls", "cost"],
  trainer: ["collected", "batch", "version", "loss", "mismatch"],
  archiver: ["episodes", "judgements"],
};
const MOST_METRICS = 8;

/** Endings of metrics' names that are units. */
const UNITS = [
  ["_per_s", (value) => `${value}/s`],
  ["_mib", (value) => `${value} MiB`],
  ["_s", (value) => `${value} s`],
];

function metric(name, value) {
  const [ending, form] = UNITS.find(([each]) => name.endsWith(each)) ?? ["", String];
  return `${words(name.slice(0, name.length - ending.length))} ${form(short(value))}`;
}

function metricsOf({ role, metrics }) {
  const first = (FIRST[role] ?? []).filter((name) => name in metrics);
  const rest = Object.keys(metrics)
    .filter((name) => !first.includes(name))
    .sort();
  return [...first, ...rest]
    .slice(0, MOST_METRICS)
    .map((name) => metric(name, metrics[name]))
    .join(" · ");
}

export function workerTable() {
  const table = keyedTable(
    "Workers",
    [["worker"], ["role"], ["state"], ["heard", "number"], ["note", "long"], ["metrics", "long metrics-of"]],
    "No worker was heard yet.",
  );
  const counts = h("p", { class: "soft" });
  return {
    element: [counts, table.element],
    update({ sections, now }) {
      const workers = sections.workers ?? [];
      const roles = new Map();
      for (const { role } of workers) roles.set(role, (roles.get(role) ?? 0) + 1);
      const silent = workers.filter((worker) => worker.silent).length;
      show(
        counts,
        [...roles].map(([role, number]) => `${number} ${role}`).join(" · "),
        silent ? h("b", { class: "alarm" }, ` · ${silent} silent`) : null,
      );
      table.set(
        workers.map((worker) => ({
          key: worker.name,
          tone: worker.silent ? "silent" : worker.state === "paused" ? "paused" : "",
          cells: [
            worker.name,
            worker.role,
            worker.silent ? "silent" : worker.state,
            `${Math.max(0, Math.round(now() - worker.heard_at))} s`,
            worker.note,
            metricsOf(worker),
          ],
        })),
      );
    },
  };
}

export function queueTable() {
  const table = keyedTable(
    "Queues",
    [
      ["queue"],
      ["for"],
      ["waiting", "number"],
      ["in hand", "number"],
      ["oldest", "number"],
      ["redelivered", "number"],
    ],
    "No queue was measured yet.",
  );
  return {
    element: table.element,
    update({ sections }) {
      table.set(
        (sections.queues ?? []).map((queue) => ({
          key: queue.name,
          tone: queue.pending || queue.in_flight ? "" : "idle",
          cells: [
            queue.name,
            queue.role,
            whole(queue.pending),
            whole(queue.in_flight),
            queue.oldest_s === null ? "–" : age(queue.oldest_s),
            whole(queue.redelivered),
          ],
        })),
      );
    },
  };
}

function size(bytes) {
  const [by, unit] = bytes < 1e9 ? [1e6, "MB"] : [1e9, "GB"];
  return `${(bytes / by).toLocaleString("en", { maximumFractionDigits: bytes < 10 * by ? 1 : 0 })} ${unit}`;
}
const share = (part, all) => (all ? `${Math.round((100 * part) / all)} %` : "–");

export function streamTable() {
  const table = keyedTable(
    "Streams",
    [["stream"], ["messages", "number"], ["size", "number"], ["of its room", "number"]],
    "No stream was measured yet.",
  );
  const room = h("p", { class: "soft" });
  return {
    element: [room, table.element],
    update({ sections }) {
      const { store, disk, streams = [] } = sections;
      room.textContent = [
        store ? `store ${size(store.num_bytes)}` : null,
        disk ? `disk ${size(disk.free_bytes)} free of ${size(disk.num_bytes)}` : null,
      ]
        .filter(Boolean)
        .join(" · ");
      table.set(
        streams.map((stream) => ({
          key: stream.stream,
          tone: "",
          cells: [
            stream.stream,
            whole(stream.num_messages),
            size(stream.num_bytes),
            share(stream.num_bytes, stream.max_bytes),
          ],
        })),
      );
    },
  };
}

/** What came of training episodes, by `key` of the run's outcomes: versions, or pages and sites. */
export function outcomeTable(label, key, name) {
  const table = keyedTable(
    label,
    [[name, "long"], ["success", "number"], ["episodes", "number"], ["steps", "number"]],
    "No training episode was judged yet.",
  );
  return {
    element: table.element,
    update({ sections }) {
      const found = Object.entries(sections.outcomes?.[key] ?? {});
      if (key === "versions") found.sort(([one], [other]) => Number(other) - Number(one));
      table.set(
        found.map(([each, { success, episodes, steps }]) => ({
          key: each,
          tone: "",
          cells: [each, success === null ? "–" : percent(success), whole(episodes), steps.toFixed(1)],
        })),
      );
    },
  };
}
