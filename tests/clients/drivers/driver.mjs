// What the Node drivers share: they are told what to ask, and tell what the client's objects say.
// A driver is run as `node DRIVER ORDER`, where the order is JSON. It asks for a picture and, if the order
// says so, once more `again`, with the conversation's past in one of the client's own forms. It prints one line
// of JSON.
import { createHash } from "node:crypto";

export const ORDER = JSON.parse(process.argv[2]);
export const { base_url: BASE_URL, form: FORM, prompt: PROMPT, again: AGAIN, forced: FORCED } = ORDER;
export const KEY = "sk-test";
export const TOOL = { type: "image_generation", ...ORDER.tool };

const digest = (picture) => createHash("sha256").update(Buffer.from(picture, "base64")).digest("hex");

// Print what came, in order: the pictures (base64; nothing for one that failed), the answers' texts, what the
// client says of each picture's state and of each response's end if it says anything, the partial pictures.
export function tell({ pictures, texts, states = [], ends = [], previews = [] }) {
  const told = { pictures: pictures.filter(Boolean).map(digest), texts, states, ends, previews: previews.map(digest) };
  console.log(JSON.stringify(told));
}
