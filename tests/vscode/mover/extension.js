// A language whose renames move files; some names stand for other operations.
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
                const beside = (name) => vscode.Uri.joinPath(document.uri, '..', name);
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
