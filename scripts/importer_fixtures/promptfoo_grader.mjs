// A grader of promptfoo that gives each case its score and its reason.
import { readFileSync } from 'node:fs';

const cases = JSON.parse(readFileSync(new URL('cases.json', import.meta.url), 'utf-8'));

export default class ScriptedGrader {
  id() {
    return 'scripted:grader';
  }

  async callApi(prompt) {
    const { score, reason } = cases.find(({ question }) => prompt.includes(question));
    return { output: JSON.stringify({ pass: score >= 0.5, score, reason }) };
  }
}
