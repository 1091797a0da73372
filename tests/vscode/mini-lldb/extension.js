'use strict';
const vscode = require('vscode');
exports.activate = (context) => {
    const program = () => vscode.workspace.getConfiguration('miniLldb').get('program');
    const factory = { createDebugAdapterDescriptor: () => new vscode.DebugAdapterExecutable(program(), []) };
    context.subscriptions.push(vscode.debug.registerDebugAdapterDescriptorFactory('lldb-dap', factory));
};
