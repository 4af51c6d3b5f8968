// Finding and making the page's elements. What others wrote only ever becomes text.

/**
 * Find an element of the page.
 * @template {Element} T
 * @param {string} id
 * @param {new () => T} kind what it must be
 * @returns {T}
 */
export function find(id, kind) {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`The page has no ${kind.name} #${id}.`);
  return element;
}

/**
 * Make an element.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {string} className
 * @param {...(Node | string)} content strings become text, never markup
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(name, className, ...content) {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

/**
 * Make a button that submits nothing.
 * @param {string} className
 * @param {string} text
 * @param {() => void} onClick
 */
export function makeButton(className, text, onClick) {
  const button = make("button", className, text);
  button.type = "button";
  button.addEventListener("click", onClick);
  return button;
}
