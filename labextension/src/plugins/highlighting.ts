import { Compartment, Text } from '@codemirror/state';
import type { Extension } from '@codemirror/state';
import { ViewPlugin } from '@codemirror/view';
import type { EditorView } from '@codemirror/view';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import {
  EditorExtensionRegistry,
  IEditorExtensionRegistry,
  IEditorLanguageRegistry
} from '@jupyterlab/codemirror';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { cuda } from '../cuda.js';
import { cellLanguage } from '../highlighting.js';
import { hovering, inspected } from '../hover.js';
import type { Tell } from '../hover.js';
import { marking, marksOf, show } from '../marks.js';

const ID = 'optiml-magic:highlighting';
const MIME = 'text/x-cuda';
const SUFFIXES = ['cu', 'cuh'];

function isCode(model: CodeEditor.IModel): model is ICodeCellModel {
  return (model as Partial<ICellModel>).type === 'code';
}

interface Switches {
  readonly colours: boolean;
  readonly marks: boolean;
  readonly words: boolean;
}

/** Shows in an editor what the outputs of its cell say of its lines. */
function watching(model: ICodeCellModel): Extension {
  const { outputs } = model; // which the model forgets before its editor ends
  return ViewPlugin.define(view => {
    let due = 0;
    const look = (): void => {
      window.clearTimeout(due);
      due = window.setTimeout(() => {
        const found = Array.from({ length: outputs.length }, (_, at) => {
          const output = outputs.get(at);
          const { type, data } = output;
          return { output_type: type, data, ...(type === 'error' ? output.toJSON() : {}) };
        });
        show(view, marksOf(found));
      });
    };
    outputs.changed.connect(look);
    look();
    return {
      destroy: () => {
        window.clearTimeout(due);
        outputs.changed.disconnect(look);
      }
    };
  });
}

/** What the settings switch on, in all cells that are open. */
class Cells {
  private readonly colours = new Compartment();
  private readonly marks = new Compartment();
  private readonly words = new Compartment();
  private readonly open = new Map<EditorView, ICodeCellModel>();
  private on: Switches = { colours: true, marks: true, words: true };

  constructor(private readonly kernelOf: (model: ICodeCellModel) => Kernel.IKernelConnection | null) {}

  extension(model: ICodeCellModel): Extension {
    const text = Text.of(model.sharedModel.getSource().split('\n'));
    const listed = ViewPlugin.define(view => {
      this.open.set(view, model);
      return { destroy: () => this.open.delete(view) };
    });
    return [
      this.colours.of(this.coloured(text)),
      this.marks.of(this.marked(model)),
      this.words.of(this.told(model)),
      listed
    ];
  }

  switch(on: Switches): void {
    this.on = on;
    for (const [view, model] of this.open) {
      const colours = this.colours.reconfigure(this.coloured(view.state.doc));
      const marks = this.marks.reconfigure(this.marked(model));
      view.dispatch({ effects: [colours, marks, this.words.reconfigure(this.told(model))] });
    }
  }

  private coloured(text: Text): Extension {
    return this.on.colours ? cellLanguage(text) : [];
  }

  private marked(model: ICodeCellModel): Extension {
    return this.on.marks ? [marking, watching(model)] : [];
  }

  private told(model: ICodeCellModel): Extension {
    const tell: Tell = (text, at) => inspected(this.kernelOf(model), text, at);
    return this.on.words ? hovering(tell) : [];
  }
}

/** CUDA in cells that the magic heads, and in files of its own. */
export const highlighting: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'CUDA in %%optiml cells and in .cu files.',
  autoStart: true,
  requires: [IEditorExtensionRegistry, IEditorLanguageRegistry],
  optional: [ISettingRegistry, INotebookTracker],
  activate: (
    app: JupyterFrontEnd,
    extensions: IEditorExtensionRegistry,
    languages: IEditorLanguageRegistry,
    registry: ISettingRegistry | null,
    tracker: INotebookTracker | null
  ) => {
    languages.addLanguage({
      name: 'cuda',
      displayName: 'CUDA',
      mime: MIME,
      extensions: SUFFIXES,
      support: cuda
    });
    app.docRegistry.addFileType({
      name: 'cuda',
      displayName: 'CUDA',
      extensions: SUFFIXES.map(suffix => `.${suffix}`),
      mimeTypes: [MIME],
      contentType: 'file',
      fileFormat: 'text'
    });
    const cells = new Cells(model => {
      const panel = tracker?.find(({ content }) => content.widgets.some(cell => cell.model === model));
      return panel?.sessionContext.session?.kernel ?? null;
    });
    extensions.addExtension({
      name: 'optiml-cell',
      factory: ({ model }) =>
        isCode(model)
          ? EditorExtensionRegistry.createImmutableExtension(cells.extension(model))
          : null
    });
    void registry?.load(ID).then(settings => {
      const take = (): void => {
        cells.switch(settings.composite as unknown as Switches);
      };
      settings.changed.connect(take);
      take();
    });
  }
};
