/** What a saved run says, as far as it is shown: `docs/notebook.md` has the whole file. */

export const TRAJECTORY = 'application/vnd.optiml.trajectory+json';
const FORMAT = 'optiml run';
const SCHEMA = 1;

export interface Finding {
  readonly severity: string;
  readonly cause: string;
  readonly line: number; // 0 where the whole kernel is meant
  readonly advice: readonly string[];
}

/** One candidate of the search. */
export interface Node {
  readonly number: number;
  readonly parent: number | null;
  readonly title: string;
  readonly outcome: string;
  readonly said: string;
  readonly speedup: number | null;
  readonly onPath: boolean;
  readonly program: string;
  readonly diff: string;
  readonly findings: readonly Finding[];
}

export interface Run {
  readonly headline: string;
  readonly task: string;
  readonly device: string;
  readonly source: string;
  readonly run: string;
  readonly winner: number;
  readonly nodes: readonly Node[];
}

type Json = Readonly<Record<string, unknown>>;

/** Read a field as what it has to be; throws where it is something else. */
class Fields {
  constructor(private readonly fields: Json) {}

  static of(value: unknown, name: string): Fields {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new Error(`${name} is missing`);
    }
    return new Fields(value as Json);
  }

  text(name: string): string {
    const value = this.fields[name];
    if (typeof value !== 'string') {
      throw new Error(`${name} is no text`);
    }
    return value;
  }

  number(name: string): number {
    const value = this.numberOrNone(name);
    if (value === null) {
      throw new Error(`${name} is no number`);
    }
    return value;
  }

  numberOrNone(name: string): number | null {
    const value = this.fields[name] ?? null;
    if (value !== null && typeof value !== 'number') {
      throw new Error(`${name} is no number`);
    }
    return value;
  }

  is(name: string): boolean {
    return this.fields[name] === true;
  }

  child(name: string): Fields {
    return Fields.of(this.fields[name], name);
  }

  children(name: string): Fields[] {
    const value = this.fields[name];
    if (!Array.isArray(value)) {
      throw new Error(`${name} is no list`);
    }
    return value.map(each => Fields.of(each, name));
  }
}

function finding(fields: Fields): Finding {
  return {
    severity: fields.text('severity'),
    cause: fields.text('cause'),
    line: fields.children('evidence').find(each => each.numberOrNone('line'))?.number('line') ?? 0,
    advice: fields.children('actions').map(action => action.text('advice'))
  };
}

function node(shown: Fields, step: Fields | undefined): Node {
  const number = shown.number('number');
  if (step?.child('candidate').number('number') !== number) {
    throw new Error(`the evidence of #${number} is missing`);
  }
  const evaluation = step.child('evaluation');
  return {
    number,
    parent: shown.numberOrNone('parent'),
    title: shown.text('title'),
    outcome: shown.text('outcome'),
    said: evaluation.child('verdict').text('summary'),
    speedup: shown.numberOrNone('speedup'),
    onPath: shown.is('on_path'),
    program: step.child('candidate').child('proposal').text('text'),
    diff: shown.text('diff'),
    findings: evaluation.children('findings').map(finding)
  };
}

/** A run from the JSON of its file, or from its text. Throws an Error that says what is wrong. */
export function readRun(given: unknown): Run {
  let value = given;
  if (typeof given === 'string') {
    try {
      value = JSON.parse(given);
    } catch {
      throw new Error('This is not JSON, so not a saved run.');
    }
  }
  if ((value as Json | null)?.format !== FORMAT) {
    throw new Error('This is not a saved run: name a file that %optiml save wrote.');
  }
  const file = Fields.of(value, 'the run');
  if (file.number('schema') !== SCHEMA) {
    throw new Error(`The run has schema ${file.number('schema')}; this release shows ${SCHEMA}.`);
  }
  try {
    const view = file.child('view');
    const steps = file.child('summary').child('trajectory').children('steps');
    const nodes = view.children('nodes').map((shown, at) => node(shown, steps[at]));
    return {
      headline: view.text('headline'),
      task: view.text('task'),
      device: view.text('device'),
      source: view.text('source'),
      run: file.text('run'),
      winner: view.number('winner'),
      nodes
    };
  } catch (error) {
    throw new Error(`The file is damaged: ${(error as Error).message}.`, { cause: error });
  }
}

/** The nodes in the order of a tree, each with its depth; below those whose parent is unknown. */
export function ordered(nodes: readonly Node[]): { node: Node; depth: number }[] {
  const known = new Set(nodes.map(({ number }) => number));
  const children = new Map<number | null, Node[]>();
  for (const each of nodes) {
    const above = each.parent !== null && known.has(each.parent) ? each.parent : null;
    children.set(above, [...(children.get(above) ?? []), each]);
  }
  const rows: { node: Node; depth: number }[] = [];
  const waiting = (children.get(null) ?? []).map(each => ({ node: each, depth: 1 })).reverse();
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    rows.push(next);
    const depth = next.depth + 1;
    waiting.push(...(children.get(next.node.number) ?? []).map(each => ({ node: each, depth })).reverse());
  }
  return rows;
}
