// A language whose renames move files, and one out of the folder.
'use strict';
const vscode = require('vscode');

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
            provideRenameEdits(document, position, newName) {
                const edit = new vscode.WorkspaceEdit();
                edit.replace(document.uri, document.getWordRangeAtPosition(position), newName);
                const place = newName === 'away' ? '../../away' : `../${newName}`;
                edit.renameFile(document.uri, vscode.Uri.joinPath(document.uri, `${place}.properties`));
                return edit;
            },
        }),
    );
};
