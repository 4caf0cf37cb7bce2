// Runs tsc, eslint or vitest over a candidate's files, in a copy that finds the installed packages.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";

const [tool, work, kit, deps] = process.argv.slice(2);
const packages = join(deps, "node_modules");
const root = join(process.env.TMPDIR, "project");
const evalFolder = join(root, "evals", "category", "name");
const candidate = join(evalFolder, "answer");

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    module: "ESNext",
    moduleResolution: "Bundler",
    target: "ESNext",
    lib: ["ES2023", "DOM"],
    jsx: "react-jsx",
    types: [],
  },
  include: ["**/*.ts", "**/*.tsx"],
};

function write(folder, files) {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

function run(program, words, folder) {
  const done = spawnSync(process.execPath, [join(packages, program), ...words], {
    cwd: folder,
    stdio: "inherit",
  });
  process.exit(done.status ?? 1);
}

mkdirSync(candidate, { recursive: true });
symlinkSync(packages, join(root, "node_modules"));

if (tool === "types") {
  cpSync(work, candidate, { recursive: true });
  writeFileSync(join(candidate, "tsconfig.json"), JSON.stringify(TSCONFIG));
  run("typescript/bin/tsc", ["--project", "tsconfig.json", "--pretty", "false"], candidate);
} else if (tool === "lint") {
  cpSync(work, candidate, { recursive: true });
  cpSync(join(kit, "eslint.config.mjs"), join(root, "eslint.config.mjs"));
  const words = ["--no-inline-config", "--config", "eslint.config.mjs", candidate];
  run("eslint/bin/eslint.js", words, root);
} else {
  // `./answer` in a grader is the candidate's folder, and `../../../grader` is ours.
  write(candidate, JSON.parse(readFileSync(process.env.CANDIDATE_FILES, "utf8")));
  cpSync(join(kit, "grader"), evalFolder, { recursive: true });
  mkdirSync(join(root, "grader"));
  cpSync(join(kit, "grader_module.ts"), join(root, "grader", "index.ts"));
  process.env.OUTPUT_FOLDER = candidate;
  process.env.NO_COLOR = "1";
  const { startVitest } = await import(join(packages, "vitest/dist/node.js"));
  const report = join(process.env.TMPDIR, "report.json");
  const settings = {
    root,
    config: false,
    watch: false,
    include: ["evals/**/*.test.ts"],
    reporters: ["default", "json"],
    outputFile: { json: report },
    pool: "threads",
    poolOptions: { threads: { singleThread: true } },
    fileParallelism: false,
  };
  const vitest = await startVitest("test", [], settings, {
    cacheDir: join(process.env.TMPDIR, "cache"),
    server: { host: "127.0.0.1" }, // a sandbox does not know the name localhost
  });
  await vitest?.close();
  const files = JSON.parse(readFileSync(report, "utf8")).testResults;
  const tests = files.flatMap((file) => file.assertionResults);
  const lines = tests.map((test, n) => {
    const name = test.fullName.trim().replaceAll(/[\n#]/g, " ");
    return `${test.status === "passed" ? "" : "not "}ok ${n + 1} - ${name}`;
  });
  for (const file of files.filter((one) => one.assertionResults.length === 0)) {
    lines.push(`not ok ${lines.length + 1} - ${(file.message || "no test was found").split("\n")[0]}`);
  }
  writeSync(3, ["TAP version 13", `1..${lines.length}`, ...lines, ""].join("\n"));
  process.exit(0);
}
