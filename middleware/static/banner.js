// The banner that tells what went wrong, and offers to try again.

import { find } from "./elements.js";

export class Banner {
  #element = find("banner", HTMLElement);
  #text = find("banner-text", HTMLElement);
  #again = find("again", HTMLButtonElement);
  /** @type {(() => void) | null} */
  #retry = null;

  /** @param {() => void} onDismiss */
  constructor(onDismiss) {
    this.#again.addEventListener("click", () => this.#retry?.());
    find("dismiss", HTMLButtonElement).addEventListener("click", () => {
      this.hide();
      onDismiss();
    });
  }

  /**
   * @param {string} text
   * @param {(() => void) | null} [retry] does it once more
   */
  show(text, retry = null) {
    this.#text.textContent = text;
    this.#retry = retry;
    this.#again.hidden = !retry;
    this.#element.hidden = false;
  }

  hide() {
    this.#element.hidden = true;
  }
}
