import { writeFileSync } from "node:fs";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: "http://127.0.0.1:8766/v1", apiKey: "-" });
const response = await client.responses.create({
  model: "local",
  input: "Draw a red cat",
  tools: [{ type: "image_generation" }],
});
for (const item of response.output) {
  if (item.type === "image_generation_call" && item.result) {
    writeFileSync("cat.png", Buffer.from(item.result, "base64"));
  }
}
console.log(response.output_text);
