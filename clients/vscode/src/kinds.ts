/**
 * Returns what a warning is about, without what differs each time: names in
 * quotation marks and numbers, such as process ids.
 */
export function kindOf(warning: string): string {
  return warning.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/\d+/g, "0");
}
