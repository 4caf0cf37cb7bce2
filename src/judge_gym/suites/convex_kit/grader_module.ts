// What graders of convex-evals import from "../../../grader", as far as it needs no backend.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const output = process.env.OUTPUT_FOLDER ?? "";

export function getLatestOutputProjectDir(_category?: string, _name?: string): string {
  return output;
}

export function readOutputFile(_category: string, _name: string, path: string): string {
  return readFileSync(join(output, path), "utf8");
}

export function hasOutputFile(_category: string, _name: string, path: string): boolean {
  return existsSync(join(output, path));
}
