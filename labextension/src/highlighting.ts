import { Compartment, EditorState, Prec } from '@codemirror/state';
import type { Extension } from '@codemirror/state';

import { cudaCell, proseCell } from './cuda.js';
import { bodyOf } from './magic.js';
import type { Body, Lines } from './magic.js';

const LANGUAGES: Record<Body, Extension> = {
  cuda: Prec.high(cudaCell),
  prose: Prec.high(proseCell),
  other: []
};

/**
 * The language of a cell by its first line. It takes precedence over the notebook's own, which
 * comes back where the magic goes; the editor is configured anew only where the kind changes.
 */
export function cellLanguage(text: Lines): Extension {
  const language = new Compartment();
  return [
    language.of(LANGUAGES[bodyOf(text)]),
    EditorState.transactionExtender.of(transaction => {
      if (!transaction.docChanged) {
        return null;
      }
      const now = bodyOf(transaction.newDoc);
      return now === bodyOf(transaction.startState.doc)
        ? null
        : { effects: language.reconfigure(LANGUAGES[now]) };
    })
  ];
}
