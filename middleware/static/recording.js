// Saves an answer as a recording: the request, the model server's turns and the stream, zipped.

import { make } from "./elements.js";

/**
 * @param {string} responseId
 * @throws {Error} the server has it no longer, or is gone; the message can be shown
 */
export async function saveRecording(responseId) {
  const response = await fetch(`/recordings/${encodeURIComponent(responseId)}`).catch(() => null);
  if (!response) throw new Error("The recording could not be fetched. Is the server still running?");
  if (!response.ok) throw new Error("The server has no recording of this answer any more.");
  const link = make("a", "");
  link.href = URL.createObjectURL(await response.blob());
  link.download = `imagecall-${responseId}.zip`;
  link.click();
  // The browser has taken hold of the file by the next task.
  setTimeout(() => URL.revokeObjectURL(link.href));
}
