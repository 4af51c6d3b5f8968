// The raw events of one answer, as they came.

import { make } from "./elements.js";
import { eventRow } from "./event_row.js";
import { Timeline } from "./timeline.js";
import { bytes, seconds } from "./units.js";

/** @typedef {import("./wire.js").AnswerEvent} AnswerEvent */

const MOST_ROWS = 2000;
const ENDINGS = ["response.completed", "response.incomplete", "response.failed"];

export class EventLog {
  element = make("div", "log");
  /** The response's id, if its stream was read to the end: then it can be saved. */
  saveable = "";
  #timeline = new Timeline();
  #list = make("ol", "events");
  #began = performance.now();
  #last = 0;
  #count = 0;
  #size = 0;
  #response = "";
  #ended = false;

  /** @param {string} title what was asked */
  constructor(title) {
    this.title = title;
    this.#list.tabIndex = 0;
    this.#list.setAttribute("aria-label", "Raw events of the stream");
    this.element.append(this.#timeline.element, this.#list);
  }

  /** What is in it, in a few words. */
  get summary() {
    if (!this.#count) return "no events";
    const events = this.#count === 1 ? "1 event" : `${this.#count} events`;
    return `${events} · ${bytes(this.#size)} · ${seconds(this.#last)}`;
  }

  /**
   * @param {AnswerEvent} event
   * @param {number} size of its JSON, in characters
   */
  add(event, size) {
    const list = this.#list;
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    this.#last = performance.now() - this.#began;
    this.#count += 1;
    this.#size += size;
    this.#response ||= event.response?.id ?? "";
    this.#ended ||= ENDINGS.includes(event.type);
    this.#timeline.add(event, this.#last);
    list.append(eventRow(event, size, this.#last));
    if (list.childElementCount > MOST_ROWS) list.firstElementChild?.remove();
    if (atEnd) list.scrollTop = list.scrollHeight;
  }

  /** No more events will come. */
  close() {
    if (this.#ended) this.saveable = this.#response;
  }
}
