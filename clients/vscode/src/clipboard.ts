/**
 * Removes the clipboard escape sequence (OSC 52) from a stream of text. VS
 * Code's terminal obeys it. A sandboxed program could then write a command that
 * the user pastes into another shell, or read a password.
 *
 * VS Code's parser is lenient, and so is this one. A sequence may start with
 * one character (U+009D) or two. Control characters may occur within the
 * introduction, and the number may have leading zeros.
 */
export class ClipboardFilter {
  private state: "ground" | "escape" | "number" | "dropping" = "ground";
  private introduction = "";
  private digits = "";

  /**
   * Returns the text that may pass. An incomplete sequence is kept for the next
   * call.
   */
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

  /** Held back, and found to be harmless. */
  private pending(): string {
    return this.state === "number" ? this.introduction + this.digits : "";
  }

  private afterEscape(character: string): string {
    if (character === "]") return this.open("\u001b]", "");
    // The terminal executes a control character and continues the sequence.
    if (character < " " && character !== "\u0018" && character !== "\u001a") return character;
    this.state = "ground";
    return `\u001b${character}`;
  }

  private inNumber(character: string): string {
    if (character >= "0" && character <= "9") {
      this.digits += character;
      if (this.digits.length > 32) this.state = "dropping"; // no valid number is so long
      return "";
    }
    if (character < " " && !"\u0007\u0018\u001a".includes(character)) return ""; // the terminal skips it
    if (character === ";" && Number(this.digits) === 52) {
      this.state = "dropping";
      return "";
    }
    const before = this.pending();
    this.state = "ground";
    return before + character;
  }
}
