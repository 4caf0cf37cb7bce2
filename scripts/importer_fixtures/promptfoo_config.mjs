// The configuration of promptfoo that writes the fixture: a provider that gives scripted answers to two prompts, and
// a grader that is scripted, too.
import { readFileSync } from 'node:fs';

const cases = JSON.parse(readFileSync(new URL('cases.json', import.meta.url), 'utf-8'));

const capitals = {
  id: () => 'scripted:capitals',
  callApi: async (prompt) => ({
    output: cases.find(({ question }) => prompt.includes(question)).answer,
  }),
};

export default {
  prompts: ['Briefly: {{question}}', 'In one word: {{question}}'],
  providers: [capitals],
  defaultTest: {
    options: {
      provider: 'file://promptfoo_grader.mjs',
      rubricPrompt: 'Does {{output}} satisfy: {{rubric}}?',
    },
  },
  tests: cases.map(({ id, question, reference }) => ({
    description: id,
    vars: { question, reference },
    assert: [
      { type: 'llm-rubric', value: '{{question}} {{reference}}', metric: 'correct' },
      { type: 'icontains', value: '{{reference}}' },
    ],
  })),
};
