/* A policy worker in another language: a NATS client, a MessagePack codec, and nothing of Millrace but docs/messages.md.

     cd examples/policy_in_javascript && npm install
     node policy.js ../../runs/mine/server mine js-1

It takes steps like any policy worker, beside others or alone, and may be killed at any moment. What it decides is no marvel:
it clicks on the first numbered element whose words stand in the task, else into the middle of the page. */

import { readFileSync } from "node:fs";
import { crc32 } from "node:zlib";

import { decode, encode } from "@msgpack/msgpack";
import { connect, headers, nkeyAuthenticator } from "@nats-io/transport-node";

const SLOTS = 4;
const WAIT_S = 20;
const WRONG_LAST_SEQUENCE = [10071, 10164];

const [server, run, worker] = process.argv.slice(2);
const { url } = JSON.parse(readFileSync(`${server}/nats.json`));
const nats = await connect({
  servers: url,
  authenticator: nkeyAuthenticator(readFileSync(`${server}/keys/${run}/policy.seed`)),
  inboxPrefix: "_INBOX_policy",
  maxReconnectAttempts: -1,
  name: worker,
});

const ask = (subject, payload, options) => nats.request(subject, payload, { timeout: 10_000, ...options });
const about = (await ask(`$JS.API.STREAM.INFO.${run}_EPISODES0`)).json();
const numShards = Number(about.config.metadata["millrace.num_shards"]);
const chainOf = (episode) => `${run}.ep.${crc32(episode) % numShards}.${episode}`;
const streamOf = (episode) => `${run}_EPISODES${crc32(episode) % numShards}`;
const held = new Set();
const nameOf = ({ episode, attempt, step }) => `${episode}.${attempt}.${step}`;

function decide(task, observation) {
  const named = (observation.elements ?? []).find(({ text }) => text && task.instruction.includes(text));
  return named ? { kind: "click", element: named.id } : { kind: "click", point: [500, 500] };
}

/** A stored record by what names it; undefined: it has aged out. */
async function stored(episode, request) {
  const found = await ask(`$JS.API.DIRECT.GET.${streamOf(episode)}`, JSON.stringify(request));
  return found.headers?.code ? undefined : decode(found.data);
}

/** Appends a message and returns the server's answer: `seq`, or `error`. */
async function append(subject, message, conditions = {}) {
  const given = headers();
  for (const [name, value] of Object.entries(conditions)) given.set(name, String(value));
  return (await ask(subject, encode(message), { headers: given })).json();
}

/** Answers the observation that a wake-up names, unless it has its answer already. */
async function answer({ episode, attempt, step, observation_seq }) {
  const chain = chainOf(episode);
  const observation = await stored(episode, { seq: observation_seq });
  const task = await stored(episode, { last_by_subj: `${chain}.task` });
  if (observation?.type !== "obs/1" || task === undefined) return;
  const action = decide(task, observation);
  const response = JSON.stringify(action);
  const message = { type: "act/1", episode, attempt, step, action, parsed: true, response, screenshots: [step], worker };
  const { error } = await append(`${chain}.${attempt}.act.${step}`, message, {
    "Nats-Expected-Last-Subject-Sequence": observation_seq, // behind exactly what was seen, or not at all
    "Nats-Expected-Last-Subject-Sequence-Subject": `${chain}.>`,
  });
  if (error && !WRONG_LAST_SEQUENCE.includes(error.err_code)) throw new Error(error.description);
}

async function hold(wake) {
  held.add(nameOf(wake));
  await answer(wake).finally(() => held.delete(nameOf(wake)));
}

/** One slot: takes a wake-up from the queue that all policy workers share, says so, answers, acknowledges. */
async function serve(split) {
  const next = `$JS.API.CONSUMER.MSG.NEXT.${run}_STEPS.policies_${split}`;
  const request = JSON.stringify({ batch: 1, expires: WAIT_S * 1e9 });
  while (!nats.isClosed()) {
    try {
      // With an inbox of its own: a delivery comes under the subject that it was stored by, not under the inbox's.
      const delivery = await ask(next, request, { timeout: (WAIT_S + 5) * 1_000, noMux: true });
      if (delivery.headers?.code) continue; // nothing came
      const { type, ...wake } = decode(delivery.data);
      const shard = crc32(wake.episode) % numShards;
      const told = { type: "held/1", episode: wake.episode, attempt: wake.attempt, step: wake.step, worker };
      nats.publish(`${run}.live.${shard}.${wake.episode}.${wake.attempt}.held.${wake.step}`, encode(told));
      await hold(wake);
      delivery.respond("+ACK");
    } catch (error) {
      // What was taken is not acknowledged, so that it comes again, here or elsewhere.
      if (!nats.isClosed()) console.error(`${error.message}: going on`);
      await new Promise((done) => setTimeout(done, 1_000));
    }
  }
}

/** Steps of episodes that were answered here before are offered, and whoever waits asks whether they are in good hands. */
function listen() {
  nats.subscribe(`${run}.wake.${worker}`, {
    callback(_, offered) {
      const { type, ...wake } = decode(offered.data);
      const has = held.has(nameOf(wake));
      offered.respond(has || type === "wake/1" ? "+" : "-");
      if (!has && type === "wake/1") hold(wake).catch((error) => console.error(`${error.message}: it is offered again`));
    },
  });
}

const say = (state) => append(`${run}.served.${worker}`, { type: "served/1", worker, state, version: 0, at: Date.now() / 1_000 });
const beat = () =>
  nats.publish(
    `${run}.heartbeat.policy.${worker}`,
    encode({ type: "heartbeat/1", role: "policy", worker, state: "working", at: Date.now() / 1_000 }),
  );

await say("serving");
listen();
beat();
setInterval(beat, 2_000);
for (const split of ["train", "eval"]) for (let slot = 0; slot < SLOTS; slot++) serve(split);
for (const signal of ["SIGINT", "SIGTERM"])
  process.once(signal, async () => {
    await say("away");
    await nats.close();
    process.exit(0);
  });
console.log(`${worker} serves ${run}`);
