// AI SDK: the messages of the conversation, in which pictures are references by id; streamed, also with
// previews (each of which becomes one more reference), or whole.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";
import { BASE_URL, FIRST, FORM, KEY, SECOND, tell } from "./driver.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const openai = createOpenAI({ baseURL: BASE_URL, apiKey: KEY });
const previews = FORM === "previews" ? { partialImages: 2 } : {};
const tools = { image_generation: openai.tools.imageGeneration(previews) };

async function ask(messages) {
  const asked = { model: openai.responses("local"), messages, tools, maxRetries: 0 };
  if (FORM === "whole") return generateText(asked);
  const result = streamText({ ...asked, onError: ({ error }) => { throw error; } });
  const pictures = new Map();
  for await (const part of result.fullStream) {
    if (part.type === "tool-result") pictures.set(part.toolCallId, part.output.result);
  }
  return { pictures: [...pictures.values()], text: await result.text, response: await result.response };
}

const picturesOf = (turn) => turn.pictures ?? turn.staticToolResults.map((made) => made.output.result);
const asked = { role: "user", content: FIRST };
const first = await ask([asked]);
const second = await ask([asked, ...first.response.messages, { role: "user", content: SECOND }]);
tell([...picturesOf(first), ...picturesOf(second)], [first.text, second.text]);
