import * as vscode from "vscode";

import { Page } from "./page";

/** The language of these documents in package.json: lines wrap, headings stand out. */
const language = "sandbox-report";

/**
 * Read-only documents that are generated when they are shown, and again when
 * their content has changed.
 */
export class Documents implements vscode.TextDocumentContentProvider, vscode.DocumentLinkProvider, vscode.DocumentSymbolProvider
{
  static readonly scheme = "sandbox-sidecar";
  private readonly makers = new Map<string, () => Promise<Page>>();
  /** The documents that are being opened. */
  private readonly showing = new Set<string>();
  /** What is shown, for its links. */
  private readonly pages = new Map<string, Page>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  constructor(context: vscode.ExtensionContext) {
    context.subscriptions.push(
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(Documents.scheme, this),
      vscode.languages.registerDocumentLinkProvider({ scheme: Documents.scheme }, this),
      vscode.languages.registerDocumentSymbolProvider({ scheme: Documents.scheme }, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => {
        if (uri.scheme !== Documents.scheme || this.showing.has(uri.toString())) return;
        this.makers.delete(uri.toString());
        this.pages.delete(uri.toString());
      }),
    );
  }

  /** Shows a document under a title. make generates it. */
  async show(title: string, about: string, make: () => Promise<Page>): Promise<void> {
    const uri = vscode.Uri.from({ scheme: Documents.scheme, path: `/${title}`, query: about });
    this.makers.set(uri.toString(), make);
    this.changed.fire(uri);
    this.showing.add(uri.toString());
    try {
      const document = await vscode.workspace.openTextDocument(uri);
      // Another language is a close and an opening to the editor.
      const known = document.languageId === language;
      const shown = known ? document : await vscode.languages.setTextDocumentLanguage(document, language);
      await vscode.window.showTextDocument(shown, { preview: false });
    } finally {
      this.showing.delete(uri.toString());
    }
  }

  /** Generates the open documents again. */
  refresh(): void {
    for (const uri of this.makers.keys()) this.changed.fire(vscode.Uri.parse(uri));
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const page = (await this.makers.get(uri.toString())?.()) ?? new Page();
    this.pages.set(uri.toString(), page);
    return page.text;
  }

  /** Leads from a place in a settings file, as the page shows it, to that line. */
  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    const page = this.pages.get(document.uri.toString());
    if (page === undefined || page.text !== document.getText()) return []; // it changes just now
    return page.links.map(({ file, line, start, end }) => {
      const range = new vscode.Range(document.positionAt(start), document.positionAt(end));
      return new vscode.DocumentLink(range, vscode.Uri.file(file).with({ fragment: `L${line}` }));
    });
  }

  /** Lets an editor's outline and a screen reader go from heading to heading. */
  provideDocumentSymbols(document: vscode.TextDocument): vscode.DocumentSymbol[] {
    const headings = document.getText().split("\n").flatMap((line, i) => (/^[A-Z][^a-z]*$/.test(line) ? [i] : []));
    return headings.map((line, i) => {
      const next = headings[i + 1] ?? document.lineCount;
      const whole = new vscode.Range(line, 0, next - 1, document.lineAt(next - 1).text.length);
      const { range, text } = document.lineAt(line);
      return new vscode.DocumentSymbol(text, "", vscode.SymbolKind.String, whole, range);
    });
  }
}
