// What the Node drivers share: they are told where and how, and tell which pictures came.
// A driver is run as `node DRIVER BASE_URL FORM`. It asks for a picture, says `make it blue` in the client's
// own form of replaying a conversation, and prints one line of JSON.
import { createHash } from "node:crypto";

export const FIRST = "Draw a red cat";
export const SECOND = "make it blue";
export const [BASE_URL, FORM] = process.argv.slice(2);
export const KEY = "sk-test";
export const TOOL = { type: "image_generation" };

// Print the pictures' digests (they come as base64) and the answers' texts, in order.
export function tell(pictures, texts) {
  const digests = pictures.map((one) => createHash("sha256").update(Buffer.from(one, "base64")).digest("hex"));
  console.log(JSON.stringify({ pictures: digests, texts }));
}
