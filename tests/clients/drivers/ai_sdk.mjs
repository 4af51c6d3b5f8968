// AI SDK: the messages of the conversation, in which pictures are references by id; streamed, also with
// previews (each of which becomes one more reference), or whole.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";
import { AGAIN, BASE_URL, FORCED, FORM, KEY, ORDER, PROMPT, tell } from "./driver.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const openai = createOpenAI({ baseURL: BASE_URL, apiKey: KEY });
const partialImages = FORM === "previews" ? 2 : ORDER.tool.partial_images;
const tools = { image_generation: openai.tools.imageGeneration(partialImages ? { partialImages } : {}) };
const toolChoice = FORCED ? { type: "tool", toolName: "image_generation" } : "auto";
const previews = [];

// Previews come as earlier results of the same call: the last one is the picture.
async function ask(messages) {
  const asked = { model: openai.responses("local"), messages, tools, toolChoice, maxRetries: 0 };
  if (FORM === "whole") return generateText(asked);
  const result = streamText({ ...asked, onError: ({ error }) => { throw error; } });
  const pictures = new Map();
  for await (const part of result.fullStream) {
    if (part.type !== "tool-result") continue;
    if (pictures.has(part.toolCallId)) previews.push(pictures.get(part.toolCallId));
    pictures.set(part.toolCallId, part.output.result);
  }
  const [text, finishReason, response] = [await result.text, await result.finishReason, await result.response];
  return { pictures: [...pictures.values()], text, finishReason, response };
}

const picturesOf = (turn) => turn.pictures ?? turn.staticToolResults.map((made) => made.output.result);
const asked = { role: "user", content: PROMPT };
const turns = [await ask([asked])];
if (AGAIN) turns.push(await ask([asked, ...turns[0].response.messages, { role: "user", content: AGAIN }]));
const pictures = turns.flatMap(picturesOf);
tell({
  pictures,
  texts: turns.map((turn) => turn.text),
  states: pictures.map((one) => (one ? "a result" : "an empty result")),
  ends: turns.map((turn) => turn.finishReason),
  previews: FORM === "previews" ? [] : previews,
});
