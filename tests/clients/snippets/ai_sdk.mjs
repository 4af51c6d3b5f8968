import { writeFileSync } from "node:fs";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText } from "ai";

const openai = createOpenAI({ baseURL: "http://127.0.0.1:8766/v1", apiKey: "-" });
const answer = await generateText({
  model: openai.responses("local"),
  prompt: "Draw a red cat",
  tools: { image_generation: openai.tools.imageGeneration() },
});
for (const made of answer.staticToolResults) {
  if (made.output.result) writeFileSync("cat.png", Buffer.from(made.output.result, "base64"));
}
console.log(answer.text);
