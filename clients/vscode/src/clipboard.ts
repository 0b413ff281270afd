/**
 * Takes the escape sequence for the clipboard (OSC 52) out of a stream of text.
 * VS Code's emulator lets whatever runs in a terminal write the clipboard, for
 * the user to paste into a shell that is not sandboxed, and read it, with the
 * passwords that are there.
 *
 * The emulator is lenient, and so is this: a sequence may be introduced by one
 * character (U+009D) or by two, control characters may stand within the
 * introduction, and the number may have leading zeros.
 */
export class ClipboardFilter {
  private state: "ground" | "escape" | "number" | "dropping" = "ground";
  private introduction = "";
  private digits = "";

  /** Answers what of the text may go on. What is not decided yet is kept for the next call. */
  pass(text: string): string {
    if (this.state === "ground" && !/[\u001b\u009d]/.test(text)) return text;
    let out = "";
    for (const character of text) out += this.step(character);
    return out;
  }

  private step(character: string): string {
    if (character === "\u009d") return this.open(character, this.pending());
    if (character === "\u001b") {
      const before = this.state === "number" ? this.pending() : "";
      this.state = "escape";
      return before;
    }
    switch (this.state) {
      case "ground":
        return character;
      case "escape":
        return this.afterEscape(character);
      case "number":
        return this.inNumber(character);
      case "dropping":
        if ("\u0007\u0018\u001a\u009c".includes(character)) this.state = "ground";
        return "";
    }
  }

  private open(introduction: string, before: string): string {
    this.state = "number";
    this.introduction = introduction;
    this.digits = "";
    return before;
  }

  /** What was held back and turned out to be harmless. */
  private pending(): string {
    return this.state === "number" ? this.introduction + this.digits : "";
  }

  private afterEscape(character: string): string {
    if (character === "]") return this.open("\u001b]", "");
    // A control character is carried out, and the sequence goes on.
    if (character < " " && character !== "\u0018" && character !== "\u001a") return character;
    this.state = "ground";
    return `\u001b${character}`;
  }

  private inNumber(character: string): string {
    if (character >= "0" && character <= "9") {
      this.digits += character;
      if (this.digits.length > 32) this.state = "dropping"; // nothing that means anything
      return "";
    }
    if (character < " " && !"\u0007\u0018\u001a".includes(character)) return ""; // the emulator skips it
    if (character === ";" && Number(this.digits) === 52) {
      this.state = "dropping";
      return "";
    }
    const before = this.pending();
    this.state = "ground";
    return before + character;
  }
}
