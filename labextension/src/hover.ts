import type { Extension, Text } from '@codemirror/state';
import { hoverTooltip } from '@codemirror/view';
import type { Kernel } from '@jupyterlab/services';

import { bodyOf } from './magic.js';

/** A piece of a text, by its offsets. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** What is to be said of an offset of a text; null for nothing. */
export type Tell = (text: string, at: number) => Promise<string | null>;

/** The word at an offset of a cell of ours: up to blanks on the magic's line, below it as C has words. */
export function wordAt(doc: Text, at: number): Span | null {
  if (bodyOf(doc) === 'other') {
    return null;
  }
  const { from, text } = doc.lineAt(at);
  const isHead = doc.sliceString(0, from).trim() === '';
  for (const { index, 0: word } of text.matchAll(isHead ? /\S+/g : /\w+/g)) {
    if (from + index <= at && at <= from + index + word.length) {
      return { from: from + index, to: from + index + word.length };
    }
  }
  return null;
}

/** Asks a kernel as Shift+Tab does; nothing is said while it is busy, or of what the magic does not know. */
export async function inspected(
  kernel: Kernel.IKernelConnection | null | undefined,
  text: string,
  at: number
): Promise<string | null> {
  if (kernel?.status !== 'idle') {
    return null; // it would answer when its cell ends, and keep others waiting
  }
  const cursor_pos = Array.from(text.slice(0, at)).length; // code points, as kernels count
  try {
    const { content } = await kernel.requestInspect({ code: text, cursor_pos, detail_level: 0 });
    if (content.status !== 'ok' || !content.found || content.metadata.optiml !== true) {
      return null; // without the magic a kernel tells of Python
    }
    const told = content.data['text/plain'];
    return typeof told === 'string' ? told : null;
  } catch {
    return null; // the kernel ended meanwhile
  }
}

/** One line on what is under the pointer; text, never HTML. */
export function hovering(tell: Tell): Extension {
  return hoverTooltip(
    async (view, at) => {
      const word = wordAt(view.state.doc, at);
      const told = word && (await tell(view.state.doc.toString(), word.from + 1));
      if (!told) {
        return null;
      }
      const create = (): { dom: HTMLElement } => {
        const dom = document.createElement('div');
        dom.className = 'optiml-hover';
        dom.setAttribute('role', 'tooltip');
        dom.textContent = told;
        return { dom };
      };
      return { pos: word.from, end: word.to, above: true, create };
    },
    { hideOnChange: true }
  );
}
