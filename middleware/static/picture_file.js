// A picture's bytes. What they are is read off them: a server's word for it is not taken.

/** @typedef {{blob: Blob, suffix: string}} PictureFile */

const KINDS = [
  { type: "image/png", suffix: "png", signs: /^\x89PNG\r\n\x1a\n/ },
  { type: "image/jpeg", suffix: "jpg", signs: /^\xff\xd8\xff/ },
  { type: "image/webp", suffix: "webp", signs: /^RIFF[^]{4}WEBP/ },
  { type: "image/gif", suffix: "gif", signs: /^GIF8[79]a/ },
];

/** The bytes are no picture that this page shows. */
export class PictureFileError extends Error {}

/**
 * Read a picture from base64.
 * @param {string} base64
 * @returns {PictureFile}
 * @throws {PictureFileError}
 */
export function readPicture(base64) {
  const text = decoded(base64);
  const kind = KINDS.find(({ signs }) => signs.test(text.slice(0, 16)));
  if (!kind) throw new PictureFileError("The server sent something that is no PNG, JPEG, WebP or GIF picture.");
  const data = Uint8Array.from(text, (sign) => sign.charCodeAt(0));
  return { blob: new Blob([data], { type: kind.type }), suffix: kind.suffix };
}

/** @param {string} base64 */
function decoded(base64) {
  try {
    return atob(base64);
  } catch {
    throw new PictureFileError("The server sent a picture that is not base64.");
  }
}
