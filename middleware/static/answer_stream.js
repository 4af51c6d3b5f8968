// Asks for an answer and reads its events to the end, good or bad.

import { BrokenOffError, eventsOf } from "./sse.js";

/** @typedef {import("./wire.js").Item} Item */
/** @typedef {import("./wire.js").AnswerEvent} AnswerEvent */
/** @typedef {{output: Item[]} | {problem: string}} Ending */

/** The server or the connection failed; the message can be shown. */
export class AnswerError extends Error {}

/**
 * Ask, tell each event as it comes, and return the answer's items.
 * @param {object} body the request
 * @param {AbortSignal} signal
 * @param {(event: AnswerEvent, size: number) => void} onEvent is told the size of the event's JSON, too
 * @returns {Promise<Item[]>}
 * @throws {AnswerError} there is no whole answer, and why
 */
export async function ask(body, signal, onEvent) {
  const response = await fetch("/v1/responses", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  }).catch((cause) => {
    throw new AnswerError("The connection was lost. Is the server still running?", { cause });
  });
  if (!response.ok) throw new AnswerError(await refusal(response));
  const ending = await read(response, onEvent);
  if ("problem" in ending) throw new AnswerError(ending.problem);
  return ending.output;
}

/**
 * @param {Response} response
 * @param {(event: AnswerEvent, size: number) => void} onEvent
 * @returns {Promise<Ending>}
 */
async function read(response, onEvent) {
  /** @type {Ending | null} */
  let ending = null;
  try {
    // Also beyond the ending: only then the server knows that all has arrived.
    for await (const { data } of eventsOf(response)) {
      if (data === "[DONE]") continue;
      const event = JSON.parse(data);
      onEvent(event, data.length);
      ending ??= endingOf(event);
    }
  } catch (error) {
    if (!(error instanceof BrokenOffError)) throw unreadable(error);
    ending ??= { problem: error.message };
  }
  return ending ?? { problem: "The connection was lost before the answer was complete." };
}

/** @param {unknown} cause */
function unreadable(cause) {
  const reason = cause instanceof Error ? cause.message : cause;
  return new AnswerError(`The answer could not be read: ${reason}`, { cause });
}

/**
 * Tell how the answer ends if this event ends it.
 * @param {AnswerEvent} event
 * @returns {Ending | null}
 */
function endingOf({ type, response, error, message }) {
  if (type === "response.completed") return { output: response?.output ?? [] };
  if (type === "response.incomplete") {
    const reason = response?.incomplete_details?.reason;
    return { problem: `The answer is incomplete${reason ? `: ${reason}` : "."}` };
  }
  if (type !== "response.failed" && type !== "error") return null;
  return { problem: (response?.error ?? error)?.message || message || "The answer failed." };
}

/** @param {Response} response */
async function refusal(response) {
  try {
    const message = JSON.parse(await response.text()).error.message;
    if (typeof message === "string" && message) return message;
  } catch {
    // No error of this API: the status says more than a gateway's page would.
  }
  return `The server answered with status ${response.status}.`;
}
