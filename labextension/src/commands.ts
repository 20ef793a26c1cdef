import flags from './flags.json' with { type: 'json' };

/** The commands of a cell that a button runs. */
export type Command = 'check' | 'optimize' | 'annotate';

const FLAGS: Readonly<Record<string, Readonly<Record<string, boolean>>>> = flags;
const TAKES_VALUE = Object.values(FLAGS).reduce((all, each) => ({ ...all, ...each }), {});
const WORD = /(?:[^\s"']|"(?:[^"\\]|\\.)*"?|'[^']*'?)+/g;

/** A flag as it is typed, with its value; or any other word. */
interface Words {
  readonly text: string;
  readonly flag: string; // "" of other words
}

/** A cell's first line for another command, and the flags that this one does not know. */
export interface Rewritten {
  readonly line: string;
  readonly left: readonly string[];
}

function grouped(line: string): Words[] {
  const words = line.match(WORD) ?? [];
  const groups: Words[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    const flag = /^(?:--[\w-]+|-[A-Za-z])/.exec(word)?.[0] ?? '';
    const apart = flag === word && TAKES_VALUE[flag] === true && at + 1 < words.length;
    groups.push({ flag, text: apart ? `${word} ${words[++at]!}` : word });
  }
  return groups;
}

/**
 * The first line of a cell, made one of `command`. Flags that other commands alone know are left
 * out, and of `earlier` ones, left out before, those come back that this command knows.
 */
export function withCommand(line: string, command: Command, earlier: readonly string[] = []): Rewritten {
  const [magic, ...rest] = grouped(line.trim());
  const named = rest.length > 0 && rest[0]!.flag === '';
  const groups = [...rest.slice(named ? 1 : 0), ...grouped(earlier.join(' '))];
  const strange = ({ flag }: Words): boolean => flag in TAKES_VALUE && !(flag in FLAGS[command]!);
  const kept = groups.filter(group => !strange(group)).map(({ text }) => text);
  return {
    line: [magic?.text ?? '%%optiml', command, ...kept].join(' '),
    left: groups.filter(strange).map(({ text }) => text)
  };
}
