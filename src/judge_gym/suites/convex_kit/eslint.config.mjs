import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["**/_generated/**", "**/*.js", "**/*.mjs", "**/*.cjs"] },
  ...tseslint.configs.recommended,
);
