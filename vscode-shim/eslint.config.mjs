// The extension's own sources by typescript-eslint's strictest rules, those that need types among them.
import tseslint from "typescript-eslint";

export default tseslint.config(...tseslint.configs.strictTypeChecked, {
  languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
  rules: {
    // `() => f()` where nobody looks at the result, and numbers in texts, are plain enough.
    "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
    "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    // VS Code itself takes whatever has `dispose`, and says so in its documentation.
    "@typescript-eslint/no-unsafe-class-instance-assignment": "off",
  },
});
