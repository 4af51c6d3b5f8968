// What the model is told of the past: user messages, and all items of its answers.

import { PICTURE } from "./wire.js";

/** @typedef {import("./wire.js").Item} Item */
/** @typedef {import("./wire.js").Declaration} Declaration */
/** @typedef {{model: string, stream: true, input: object[], tools: Declaration[], tool_choice?: object}} Body */

export class Conversation {
  /** @type {any[]} */
  #items = [];

  /**
   * Make the request that asks for the next answer.
   * @param {string} model
   * @param {string} text what the user says
   * @param {Declaration} tool
   * @param {Item | null} edited the picture to change
   * @returns {Body}
   */
  request(model, text, tool, edited) {
    const message = { role: "user", content: text };
    if (!edited) return { model, stream: true, input: [...this.#items, message], tools: [tool] };
    return {
      model,
      stream: true,
      input: [...this.#endingWith(edited), message],
      tools: [{ ...tool, action: "edit" }],
      tool_choice: { type: tool.type },
    };
  }

  /**
   * Remember an exchange that went well.
   * @param {Body} body
   * @param {Item[]} output
   */
  keep(body, output) {
    this.#items = [...body.input, ...output];
  }

  /**
   * An edit changes the newest picture unless the model names another, and small models name none.
   * So the picture that is meant becomes the newest one.
   * @param {Item} edited
   */
  #endingWith(edited) {
    const newest = this.#items.findLast((item) => item.type === PICTURE && item.result);
    if (newest?.id === edited.id) return this.#items;
    return [...this.#items.filter((item) => item.id !== edited.id), edited];
  }
}
