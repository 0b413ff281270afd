/** How a window looks. */
export interface Look {
  name: string;
  scheme: "dark" | "light";
  theme: string;
  size: { width: number; height: number };
}

const wide = { width: 1280, height: 800 };

/** How a window looks unless a test says otherwise. */
export const dark: Look = { name: "dark", scheme: "dark", theme: "Default Dark Modern", size: wide };

/** The looks in which the extension must be readable. */
export const looks: readonly Look[] = [
  dark,
  { name: "light", scheme: "light", theme: "Default Light Modern", size: wide },
  { name: "high-contrast", scheme: "dark", theme: "Default High Contrast", size: { width: 1024, height: 768 } },
];

/**
 * The looks that a test tries: all if it leaves pictures in SHOTS, else the
 * smallest window, which cuts things first.
 */
export function looksToTry(): readonly Look[] {
  return process.env["SHOTS"] === undefined ? looks.slice(-1) : looks;
}
