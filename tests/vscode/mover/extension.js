// A language whose renames move files; some names stand for other operations.
'use strict';
const fs = require('node:fs');
const vscode = require('vscode');

const allEntries = vscode.WorkspaceEdit.prototype._allEntries;
const selector = { language: 'properties' };

exports.activate = (context) => {
    context.subscriptions.push(
        vscode.languages.registerDocumentSymbolProvider(selector, {
            provideDocumentSymbols(document) {
                const { range } = document.lineAt(0);
                const name = document.getText().split('=')[0];
                return [new vscode.DocumentSymbol(name, '', vscode.SymbolKind.Property, range, range)];
            },
        }),
        vscode.languages.registerRenameProvider(selector, {
            async provideRenameEdits(document, position, newName) {
                const edit = new vscode.WorkspaceEdit();
                const beside = (name) => vscode.Uri.joinPath(document.uri, '..', name);
                vscode.WorkspaceEdit.prototype._allEntries = allEntries;
                if (newName === 'hidden') {
                    // As in a version of VS Code without that function; VS Code itself still needs it for this edit.
                    edit._allEntries = allEntries;
                    vscode.WorkspaceEdit.prototype._allEntries = undefined;
                }
                if (newName === 'typed' && fs.existsSync(beside('now').fsPath)) {
                    // The user types meanwhile.
                    const typing = new vscode.WorkspaceEdit();
                    typing.insert(document.uri, document.lineAt(0).range.end, ' meanwhile');
                    await vscode.workspace.applyEdit(typing);
                }
                if (newName === 'filled') {
                    edit.createFile(beside('filled.properties'), { contents: Buffer.from('filled=1\n') });
                    return edit;
                }
                if (newName === 'other') {
                    edit.createFile(beside('other.properties'));
                    edit.insert(beside('other.properties'), new vscode.Position(0, 0), 'other=ä\n');
                    edit.deleteFile(document.uri);
                    return edit;
                }
                if (newName === 'folder') {
                    edit.renameFile(beside('box'), beside('crate'));
                    edit.insert(beside('crate/in.properties'), position, 'crate.');
                    return edit;
                }
                edit.replace(document.uri, document.getWordRangeAtPosition(position), newName);
                edit.renameFile(document.uri, beside(`${newName === 'away' ? '../away' : newName}.properties`));
                return edit;
            },
        }),
    );
};
