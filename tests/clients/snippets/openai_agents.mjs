import { writeFileSync } from "node:fs";
import { Agent, OpenAIResponsesModel, imageGenerationTool, run, setTracingDisabled } from "@openai/agents";
import OpenAI from "openai";

setTracingDisabled(true); // traces go to OpenAI
const client = new OpenAI({ baseURL: "http://127.0.0.1:8766/v1", apiKey: "-" });
const agent = new Agent({
  name: "painter",
  model: new OpenAIResponsesModel(client, "local"),
  tools: [imageGenerationTool()],
});
const result = await run(agent, "Draw a red cat");
for (const { rawItem } of result.newItems) {
  if (rawItem.type === "hosted_tool_call" && rawItem.output) {
    writeFileSync("cat.png", Buffer.from(rawItem.output, "base64"));
  }
}
console.log(result.finalOutput);
