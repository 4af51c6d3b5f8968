// A picture as it comes into being: its state, the time it takes, previews, the picture itself.

import { make, makeButton } from "./elements.js";
import { PictureFileError, readPicture } from "./picture_file.js";
import { bytes, seconds } from "./units.js";

/** @typedef {import("./wire.js").Item} Item */
/** @typedef {import("./wire.js").Declaration} Declaration */
/** @typedef {import("./picture_file.js").PictureFile} PictureFile */

/**
 * What a card may ask of the page around it.
 * @typedef {object} Surroundings
 * @property {(text: string) => void} announce tells people who cannot see it
 * @property {(item: Item, url: string) => void} edit begins to change a picture
 * @property {Declaration} tool what was asked for
 */

/** @type {Record<string, string>} */
const NAMES = { in_progress: "In progress", generating: "Generating", completed: "Done", failed: "Failed" };

export class PictureCard {
  element = make("figure", "picture");
  #frame = make("div", "frame");
  #state = make("span", "state");
  #elapsed = make("span", "elapsed");
  #caption = make("figcaption", "caption");
  /** @type {HTMLImageElement | null} */
  #image = null;
  #number;
  #around;
  #began = performance.now();
  #clock = setInterval(() => this.#tick(), 100);

  /**
   * @param {number} number of the picture within its answer
   * @param {Surroundings} around
   */
  constructor(number, around) {
    this.#number = number;
    this.#around = around;
    const [width, height] = (around.tool.size ?? "").split("x").map(Number);
    this.#frame.style.aspectRatio = height ? `${width} / ${height}` : "1";
    const progress = make("p", "progress", this.#state, this.#elapsed);
    this.element.append(this.#frame, make("div", "steps"), progress, this.#caption);
    this.enter("in_progress");
  }

  /**
   * @param {string} state as the wire calls it
   * @param {string} [name] as people do
   */
  enter(state, name = NAMES[state] ?? state) {
    this.element.dataset.state = state;
    this.#state.textContent = name;
    if (state === "generating") this.#around.announce(`Picture ${this.#number} is being made.`);
  }

  /**
   * Show a preview. One that cannot be read says nothing of the picture to come.
   * @param {number} index
   * @param {string} base64
   */
  preview(index, base64) {
    const count = Math.max(this.#around.tool.partial_images, index + 1);
    this.enter("partial_image", `Sharpening ${index + 1} of ${count}`);
    try {
      this.#show(readPicture(base64), `Preview ${index + 1} of picture ${this.#number}`).catch(() => {});
    } catch (error) {
      if (!(error instanceof PictureFileError)) throw error;
    }
  }

  /**
   * The item is complete: it holds a picture, or the reason why there is none.
   * @param {Item} item
   */
  finish(item) {
    this.#stopClock();
    if (!item.result) {
      this.#fail(item.error?.message || "The picture could not be made.");
      return;
    }
    const prompt = item.revised_prompt || `Picture ${this.#number}`;
    try {
      const file = readPicture(item.result);
      this.#show(file, prompt).catch(() => this.#fail("The picture is damaged and cannot be shown."));
      this.enter("completed");
      this.#describe(item, prompt, file);
      this.#around.announce(`Picture ${this.#number} is finished: ${prompt}`);
    } catch (error) {
      if (!(error instanceof PictureFileError)) throw error;
      this.#fail(error.message);
    }
  }

  /** The answer is over, well or badly: nothing stays in motion. */
  end() {
    if (!["completed", "failed"].includes(this.element.dataset.state ?? "")) {
      this.#fail("This picture was not finished.");
    }
  }

  /** Give the picture's memory back. */
  dispose() {
    clearInterval(this.#clock);
    if (this.#image) URL.revokeObjectURL(this.#image.src);
  }

  /** @param {string} message */
  #fail(message) {
    this.#stopClock();
    this.enter("failed");
    this.#caption.replaceChildren(make("p", "problem", message));
    this.#around.announce(`Picture ${this.#number} failed: ${message}`);
  }

  /**
   * @param {Item} item
   * @param {string} prompt
   * @param {PictureFile} file
   */
  #describe(item, prompt, file) {
    const url = this.#image?.src ?? "";
    const save = make("a", "action", "Download");
    save.href = url;
    save.download = `picture-${this.#number}.${file.suffix}`;
    save.setAttribute("aria-label", `Download: ${prompt}`);
    const edit = makeButton("action", "Edit this", () => this.#around.edit(item, url));
    edit.setAttribute("aria-label", `Edit this: ${prompt}`);
    this.#caption.replaceChildren(
      make("p", "prompt", prompt),
      make("p", "facts", facts(item, file.blob.size)),
      make("p", "actions", edit, save),
    );
  }

  /**
   * Show a file in the frame; the promise is broken if it cannot be painted.
   * @param {PictureFile} file
   * @param {string} alt
   */
  async #show({ blob }, alt) {
    const image = make("img", "");
    image.alt = alt;
    image.src = URL.createObjectURL(blob);
    const before = this.#image;
    this.#image = image;
    // The old one stays until the new one can be painted, so that nothing flickers.
    try {
      await image.decode();
      if (this.#image === image) {
        this.#frame.replaceChildren(image);
        this.#frame.style.aspectRatio = `${image.naturalWidth} / ${image.naturalHeight}`;
      }
    } finally {
      if (before) URL.revokeObjectURL(before.src);
    }
  }

  #tick() {
    this.#elapsed.textContent = seconds(performance.now() - this.#began);
  }

  #stopClock() {
    this.#tick();
    clearInterval(this.#clock);
  }
}

/**
 * @param {Item} item
 * @param {number} size in bytes
 */
function facts(item, size) {
  const background = item.background === "transparent" ? "transparent" : "";
  const quality = item.quality && item.quality !== "auto" ? `${item.quality} quality` : "";
  const changed = item.action === "edit" ? "edited" : "";
  const words = [changed, item.size, item.output_format, background, quality, bytes(size)];
  return words.filter(Boolean).join(" · ");
}
