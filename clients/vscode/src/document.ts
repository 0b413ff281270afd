import * as vscode from "vscode";

/**
 * Read-only documents that are generated when they are shown, and again when
 * their content has changed.
 */
export class Documents implements vscode.TextDocumentContentProvider, vscode.DocumentLinkProvider {
  static readonly scheme = "sandbox-sidecar";
  private readonly makers = new Map<string, () => Promise<string>>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  constructor(context: vscode.ExtensionContext) {
    context.subscriptions.push(
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(Documents.scheme, this),
      vscode.languages.registerDocumentLinkProvider({ scheme: Documents.scheme }, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => {
        if (uri.scheme === Documents.scheme) this.makers.delete(uri.toString());
      }),
    );
  }

  /** Shows a document under a title. make generates its text. */
  async show(title: string, about: string, make: () => Promise<string>): Promise<void> {
    const uri = vscode.Uri.from({ scheme: Documents.scheme, path: `/${title}`, query: about });
    this.makers.set(uri.toString(), make);
    this.changed.fire(uri);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: false });
  }

  /** Generates the open documents again. */
  refresh(): void {
    for (const uri of this.makers.keys()) this.changed.fire(vscode.Uri.parse(uri));
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    return (await this.makers.get(uri.toString())?.()) ?? "";
  }

  /**
   * Makes places in files, such as /home/ada/.zed/settings.json:12, clickable.
   */
  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    return [...document.getText().matchAll(/(\/[^\s"():]+):(\d+)/g)].map((match) => {
      const range = new vscode.Range(
        document.positionAt(match.index),
        document.positionAt(match.index + match[0].length),
      );
      return new vscode.DocumentLink(range, vscode.Uri.file(match[1] ?? "").with({ fragment: `L${match[2] ?? "1"}` }));
    });
  }
}
