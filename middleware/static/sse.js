// Reads server-sent events from a body that comes in pieces cut anywhere: inside a line end, inside a
// character. Lines end with LF, CR or CRLF; an empty one ends an event; comments begin with a colon.

/** @typedef {{type: string, data: string}} ServerSentEvent `type` is that of the `event:` line */

export class EventDecoder {
  #text = new TextDecoder();
  /** @type {string[]} */
  #line = [];
  /** @type {string[]} */
  #data = [];
  #type = "";
  #afterCR = false;

  /**
   * Take bytes; return the events they complete.
   * @param {Uint8Array} bytes
   */
  feed(bytes) {
    return this.#read(this.#text.decode(bytes, { stream: true }));
  }

  /** @param {string} text */
  #read(text) {
    /** @type {ServerSentEvent[]} */
    const events = [];
    if (this.#afterCR && text.startsWith("\n")) text = text.slice(1);
    if (text) this.#afterCR = text.endsWith("\r");
    // An event may be megabytes long: each piece is searched once and joined once.
    const lines = text.split(/\r\n|\n|\r/);
    this.#line.push(lines[0]);
    for (const next of lines.slice(1)) {
      const event = this.#take(this.#line.join(""));
      if (event) events.push(event);
      this.#line = [next];
    }
    return events;
  }

  /**
   * @param {string} line
   * @returns {ServerSentEvent | null}
   */
  #take(line) {
    if (line === "") {
      const event = { type: this.#type, data: this.#data.join("\n") };
      const whole = this.#data.length > 0;
      this.#type = "";
      this.#data = [];
      return whole ? event : null;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    if (field === "event") this.#type = value;
    return null;
  }
}

/** The body broke off: the server or the network is gone. */
export class BrokenOffError extends Error {}

/**
 * Yield the events of a response's body as they come.
 * @param {Response} response
 * @throws {BrokenOffError}
 */
export async function* eventsOf(response) {
  if (!response.body) return;
  const decoder = new EventDecoder();
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((cause) => {
        throw new BrokenOffError("The connection was lost in the middle of the answer.", { cause });
      });
      if (done) return;
      yield* decoder.feed(value);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
