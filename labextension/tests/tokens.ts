import { ensureSyntaxTree, getIndentation, language } from '@codemirror/language';
import type { LanguageSupport } from '@codemirror/language';
import { EditorState } from '@codemirror/state';
import type { Extension } from '@codemirror/state';

/** A token as an editor shows it: where it is, and the name of its kind. */
export interface Token {
  from: number;
  to: number;
  text: string;
  kind: string;
}

export function stateOf(text: string, extension: Extension): EditorState {
  return EditorState.create({ doc: text, extensions: [extension] });
}

/** The tokens that have a kind, as the editor's own syntax tree has them. */
export function tokensOf(state: EditorState): Token[] {
  const tree = ensureSyntaxTree(state, state.doc.length, 60_000);
  if (!tree) {
    throw new Error('the text was not parsed in time');
  }
  const found: Token[] = [];
  tree.iterate({
    enter(node) {
      if (!node.node.firstChild && node.name !== 'Document') {
        const { from, to } = node;
        found.push({ from, to, text: state.doc.sliceString(from, to), kind: node.name });
      }
    }
  });
  return found;
}

/** The kind of the first token with this text, "" where it has none. */
export function kindOf(text: string, token: string, support: LanguageSupport): string {
  return tokensOf(stateOf(text, support)).find(found => found.text === token)?.kind ?? '';
}

/** The texts of all tokens of a kind. */
export function all(text: string, kind: string, support: LanguageSupport): string[] {
  return tokensOf(stateOf(text, support))
    .filter(found => found.kind === kind)
    .map(found => found.text);
}

/** How far a line (from 1) is to be indented. */
export function indentOf(text: string, number: number, support: LanguageSupport): number | null {
  const state = stateOf(text, support);
  return getIndentation(state, state.doc.line(number).from);
}

export const languageOf = (state: EditorState): string => state.facet(language)?.name ?? '';
