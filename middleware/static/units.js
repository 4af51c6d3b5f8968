// Sizes and times as people read them; a no-break space keeps the unit with its number.

/** @param {number} count */
export function bytes(count) {
  if (count < 1000) return `${count}\u00a0B`;
  return count < 1e6 ? `${(count / 1e3).toFixed(1)}\u00a0kB` : `${(count / 1e6).toFixed(1)}\u00a0MB`;
}

/**
 * @param {number} milliseconds
 * @param {number} [digits]
 */
export function seconds(milliseconds, digits = 1) {
  return `${(milliseconds / 1000).toFixed(digits)}\u00a0s`;
}
