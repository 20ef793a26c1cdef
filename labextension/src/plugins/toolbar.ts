import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import type { Cell, ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { LabIcon } from '@jupyterlab/ui-components';

import { withCommand } from '../commands.js';
import type { Command } from '../commands.js';
import { annotateIcon, checkedIcon, optimizeIcon, stopIcon } from '../icons.js';
import { ask } from '../kernel.js';
import { commandOf, headOf, kernelIn } from '../magic.js';

const BUTTONS: readonly { command: Command; label: string; caption: string; icon: LabIcon }[] = [
  {
    command: 'check',
    label: 'Check the CUDA Cell',
    caption: 'Check: compile and compare with the reference',
    icon: checkedIcon
  },
  {
    command: 'optimize',
    label: 'Optimise the CUDA Cell',
    caption: 'Optimise: search for a faster kernel',
    icon: optimizeIcon
  },
  {
    command: 'annotate',
    label: 'Annotate the CUDA Cell',
    caption: 'Annotate: what each line became',
    icon: annotateIcon
  }
];
const SECONDS = { autoClose: 6000 }; // without it a notice is in the centre of notices alone
const STOP = 'optiml:stop';
const IDS = [...BUTTONS.map(({ command }) => `optiml:${command}`), STOP];

const sourceOf = (cell: Cell | null): string =>
  cell?.model.type === 'code' ? cell.model.sharedModel.getSource() : '';

function running(cell: Cell): boolean {
  const { executionState } = cell.model as Partial<ICodeCellModel>; // not in the oldest JupyterLab
  return executionState ? executionState === 'running' : (cell.promptNode?.textContent ?? '').includes('*');
}

/** End what a cell does: the search that runs in it, or the one that it began beside it. */
async function stop(app: JupyterFrontEnd, panel: NotebookPanel, cell: Cell): Promise<void> {
  if (running(cell)) {
    await app.commands.execute('notebook:interrupt-kernel');
    return;
  }
  const kernel = panel.sessionContext.session?.kernel;
  if (!kernel) {
    Notification.warning('There is no kernel, so nothing runs.', SECONDS);
    return;
  }
  try {
    const cellText = cell.model.sharedModel.getSource();
    const { said } = await ask<{ said: string }>(kernel, { ask: 'stop', cell: cellText });
    Notification.info(said, SECONDS);
  } catch (error) {
    Notification.warning(error instanceof Error ? error.message : String(error), SECONDS);
  }
}

/** Check, Optimise, Annotate and Stop in the toolbar of cells that hold a kernel. */
export const toolbar: JupyterFrontEndPlugin<void> = {
  id: 'optiml-magic:toolbar',
  description: 'Buttons in the toolbar of CUDA cells.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette],
  activate: (app: JupyterFrontEnd, tracker: INotebookTracker, palette: ICommandPalette | null) => {
    const left = new WeakMap<ICellModel, readonly string[]>();
    const isVisible = (): boolean => kernelIn(sourceOf(tracker.activeCell));
    const isOurs = (): boolean => commandOf(headOf(sourceOf(tracker.activeCell)).text) !== null;
    const run = async (command: Command): Promise<void> => {
      const cell = tracker.activeCell;
      const panel = tracker.currentWidget;
      if (!cell || !panel || !isVisible()) {
        return;
      }
      const head = headOf(sourceOf(cell));
      const written = withCommand(head.text, command, left.get(cell.model));
      left.set(cell.model, written.left);
      if (written.line !== head.text) {
        cell.model.sharedModel.updateSource(head.from, head.from + head.text.length, written.line);
      }
      panel.content.deselectAll();
      await app.commands.execute('notebook:run-cell');
    };
    for (const { command, label, caption, icon } of BUTTONS) {
      const execute = (): Promise<void> => run(command);
      app.commands.addCommand(`optiml:${command}`, { label, caption, icon, isVisible, execute });
    }
    app.commands.addCommand(STOP, {
      label: 'Stop the Search of the CUDA Cell',
      caption: 'Stop: end the search of this cell, and keep its best kernel',
      icon: stopIcon,
      isVisible: isOurs,
      execute: async () => {
        const { activeCell: cell, currentWidget: panel } = tracker;
        if (cell && panel) {
          await stop(app, panel, cell);
        }
      }
    });
    for (const command of IDS) {
      palette?.addItem({ command, category: 'OptiML' });
    }

    let watched: ICellModel | null = null;
    let shown = '';
    const look = (): void => {
      const now = `${String(isOurs())} ${String(isVisible())}`;
      if (shown !== now) {
        shown = now;
        for (const id of IDS) {
          app.commands.notifyCommandChanged(id);
        }
      }
    };
    tracker.activeCellChanged.connect((_, cell) => {
      watched?.contentChanged.disconnect(look);
      watched = cell?.model ?? null;
      watched?.contentChanged.connect(look);
      look();
    });
  }
};
