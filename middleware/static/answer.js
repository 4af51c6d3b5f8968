// One answer of the model as it grows: its texts, and a card for each picture.

import { make } from "./elements.js";
import { PictureCard } from "./picture_card.js";
import { PICTURE } from "./wire.js";

/** @typedef {import("./wire.js").Item} Item */
/** @typedef {import("./wire.js").AnswerEvent} AnswerEvent */
/** @typedef {import("./picture_card.js").Surroundings} Surroundings */

const PREFIX = `response.${PICTURE}.`;
const THOUGHT = /^response\.reasoning.*\.delta$/;

/** A text: what the model says, or what it thinks. */
class Text {
  #paragraph = make("p", "");

  /** @param {"said" | "thought"} kind */
  constructor(kind) {
    if (kind === "thought") {
      this.element = make("details", kind, make("summary", "", "Thoughts"), this.#paragraph);
    } else {
      this.element = this.#paragraph;
      this.element.className = kind;
    }
  }

  /** @param {string} delta */
  add(delta) {
    this.#paragraph.append(delta);
  }
}

export class Answer {
  element = make("div", "answer", make("p", "waiting", "Waiting for the model…"));
  /** @type {Map<number, Text>} */
  #texts = new Map();
  /** @type {Map<number, PictureCard>} */
  #cards = new Map();
  #around;

  /** @param {Surroundings} around */
  constructor(around) {
    this.#around = around;
  }

  /**
   * Show what one event of the stream means.
   * @param {AnswerEvent} event
   */
  receive(event) {
    const index = event.output_index ?? 0;
    if (event.type === "response.output_item.added" && event.item) this.#added(index, event.item);
    else if (event.type === "response.output_item.done" && event.item) this.#done(index, event.item);
    else if (event.type === `${PREFIX}partial_image`) {
      this.#card(index).preview(event.partial_image_index ?? 0, event.partial_image_b64 ?? "");
    } else if (event.type.startsWith(PREFIX)) this.#card(index).enter(event.type.slice(PREFIX.length));
    else if (event.type === "response.output_text.delta") this.#text(index, "said").add(event.delta ?? "");
    else if (THOUGHT.test(event.type)) this.#text(index, "thought").add(event.delta ?? "");
  }

  /** The stream has ended, well or badly: nothing stays in motion. */
  end() {
    this.#begin();
    for (const card of this.#cards.values()) card.end();
    for (const paragraph of this.element.querySelectorAll(".said:empty")) paragraph.remove();
    if (!this.element.childElementCount) this.element.append(make("p", "note", "No answer."));
  }

  /** Give the pictures' memory back. */
  dispose() {
    for (const card of this.#cards.values()) card.dispose();
  }

  #begin() {
    this.element.querySelector(".waiting")?.remove();
  }

  /**
   * @param {number} index
   * @param {Item} item
   */
  #added(index, item) {
    if (item.type === PICTURE) this.#card(index);
    if (item.type === "message") this.#text(index, "said");
  }

  /**
   * @param {number} index
   * @param {Item} item
   */
  #done(index, item) {
    if (item.type === PICTURE) this.#card(index).finish(item);
    if (item.type === "function_call") {
      this.#begin();
      const call = make("code", "", `${item.name}(${item.arguments})`);
      this.element.append(make("p", "call", call, " is for the client to run."));
    }
  }

  /**
   * @param {number} index
   * @param {"said" | "thought"} kind
   */
  #text(index, kind) {
    let text = this.#texts.get(index);
    if (!text) {
      this.#begin();
      text = new Text(kind);
      this.#texts.set(index, text);
      this.element.append(text.element);
    }
    return text;
  }

  /** @param {number} index */
  #card(index) {
    let card = this.#cards.get(index);
    if (!card) {
      this.#begin();
      card = new PictureCard(this.#cards.size + 1, this.#around);
      this.#cards.set(index, card);
      this.#row().append(card.element);
    }
    return card;
  }

  /** Pictures that follow each other share a row. */
  #row() {
    const last = this.element.lastElementChild;
    if (last?.classList.contains("pictures")) return last;
    const row = make("div", "pictures");
    this.element.append(row);
    return row;
  }
}
