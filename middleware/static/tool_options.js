// The options of the hosted tool, as the user has set them.

import { find } from "./elements.js";

/** @typedef {import("./wire.js").Declaration} Declaration */

export class ToolOptions {
  #panel = find("options", HTMLDetailsElement);
  #chosen = find("chosen", HTMLElement);
  #size = find("size", HTMLSelectElement);
  #quality = find("quality", HTMLSelectElement);
  #background = find("background", HTMLSelectElement);
  #format = find("format", HTMLSelectElement);
  #partials = find("partials", HTMLSelectElement);

  constructor() {
    this.#panel.addEventListener("change", () => this.#settle());
    // Where there is room the options stay open, and the style sheet hides what would close them.
    const roomy = matchMedia("(min-width: 40rem)");
    const unfold = () => (this.#panel.open = roomy.matches);
    roomy.addEventListener("change", unfold);
    unfold();
    this.#settle();
  }

  /** @returns {Declaration} the tool; what is left to the model and the server is not in it */
  declaration() {
    return {
      type: "image_generation",
      partial_images: Number(this.#partials.value),
      ...(this.#size.value && { size: this.#size.value }),
      ...(this.#quality.value && { quality: this.#quality.value }),
      ...(this.#background.value && { background: this.#background.value }),
      ...(this.#format.value && { output_format: this.#format.value }),
    };
  }

  /** A JPEG cannot be transparent: whichever of the two is chosen rules the other out. */
  #settle() {
    forbid(this.#format, "jpeg", this.#background.value === "transparent");
    forbid(this.#background, "transparent", this.#format.value === "jpeg");
    const words = [this.#size, this.#quality, this.#background, this.#format].map((select) => select.value);
    this.#chosen.textContent = words.filter(Boolean).join(" · ") || "auto";
  }
}

/**
 * @param {HTMLSelectElement} select
 * @param {string} value
 * @param {boolean} forbidden
 */
function forbid(select, value, forbidden) {
  for (const option of select.options) if (option.value === value) option.disabled = forbidden;
}
