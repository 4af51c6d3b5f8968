// @openai/agents: the run's own history (which leaves the pictures out), or the previous response's id,
// over HTTP or a WebSocket.
import {
  Agent,
  OpenAIResponsesModel,
  OpenAIResponsesWSModel,
  imageGenerationTool,
  run,
  setTracingDisabled,
} from "@openai/agents";
import OpenAI from "openai";
import { AGAIN, BASE_URL, FORCED, FORM, KEY, ORDER, PROMPT, tell } from "./driver.mjs";

setTracingDisabled(true);
const client = new OpenAI({ baseURL: BASE_URL, apiKey: KEY, maxRetries: 0 });
const Model = FORM === "websocket" ? OpenAIResponsesWSModel : OpenAIResponsesModel;
const model = new Model(client, "local");
const agent = new Agent({
  name: "painter",
  instructions: "You draw.",
  model,
  modelSettings: FORCED ? { toolChoice: "image_generation" } : {},
  tools: [imageGenerationTool({ partialImages: ORDER.tool.partial_images })],
});
const previews = [];

async function ask(given, more = {}) {
  if (FORM === "whole") return run(agent, given, more);
  const result = await run(agent, given, { ...more, stream: true });
  for await (const event of result) {
    const raw = event.type === "raw_model_stream_event" ? event.data.event : undefined;
    if (raw?.type === "response.image_generation_call.partial_image") previews.push(raw.partial_image_b64);
  }
  await result.completed;
  return result;
}

const runs = [await ask(PROMPT)];
if (AGAIN && FORM === "previous") {
  runs.push(await ask(AGAIN, { previousResponseId: runs[0].lastResponseId }));
} else if (AGAIN) {
  runs.push(await ask([...runs[0].history, { role: "user", content: AGAIN }]));
}
const calls = runs.flatMap((one) => one.newItems).map((item) => item.rawItem);
const pictures = calls.filter((call) => call.type === "hosted_tool_call");
tell({
  pictures: pictures.map((call) => call.output),
  texts: runs.map((one) => one.finalOutput),
  states: pictures.map((call) => call.status + (call.providerData?.error ? `: ${call.providerData.error.message}` : "")),
  previews,
});
await model.close?.();
