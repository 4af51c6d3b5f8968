// The shapes of the Responses API that the page reads. They are what a server should send, no more.

/**
 * @typedef {object} Item one item of an answer
 * @property {string} type
 * @property {string} [id]
 * @property {string} [status]
 * @property {string | null} [result] base64
 * @property {string} [revised_prompt]
 * @property {string} [action]
 * @property {string} [background]
 * @property {string} [output_format]
 * @property {string} [quality]
 * @property {string} [size]
 * @property {{message?: string} | null} [error]
 * @property {string} [name]
 * @property {string} [arguments]
 */

/**
 * @typedef {object} AnswerEvent one event of a stream
 * @property {string} type
 * @property {number} [sequence_number]
 * @property {number} [output_index]
 * @property {Item} [item]
 * @property {string} [delta]
 * @property {number} [partial_image_index]
 * @property {string} [partial_image_b64]
 * @property {string} [message]
 * @property {{message?: string} | null} [error]
 * @property {{id?: string, output?: Item[], error?: {message?: string} | null,
 *   incomplete_details?: {reason?: string} | null}} [response]
 */

/**
 * @typedef {object} Declaration the hosted tool as a request declares it
 * @property {"image_generation"} type
 * @property {number} partial_images
 * @property {"edit"} [action]
 * @property {string} [size]
 * @property {string} [quality]
 * @property {string} [background]
 * @property {string} [output_format]
 */

/** The type of the items that are pictures. */
export const PICTURE = "image_generation_call";
