import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, MainAreaWidget } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Widget } from '@lumino/widgets';

import { withCommand } from '../commands.js';
import { runsIcon } from '../icons.js';
import { RunsPanel } from '../panel.js';
import type { Page } from '../panel.js';
import { view } from '../viewer.js';

const ID = 'optiml-magic:runs';
const SHOW = 'optiml:show-runs';

/** The words of a command as a line that the magic splits into them again. */
function quoted(words: readonly string[]): string {
  const plain = /^[\w./:=@%+,-]+$/;
  const one = (word: string): string => `'${word.replaceAll("'", `'"'"'`)}'`;
  return words.map(word => (plain.test(word) ? word : one(word))).join(' ');
}

function pageOf(app: JupyterFrontEnd, tracker: INotebookTracker): Page {
  return {
    kernel: () => tracker.currentWidget?.sessionContext.session?.kernel ?? null,
    open: (run, saved) => {
      const content = new Widget({ node: view(saved) });
      content.addClass('optiml-renderer');
      const tab = new MainAreaWidget({ content });
      tab.title.label = run;
      tab.title.icon = runsIcon;
      app.shell.add(tab, 'main');
      app.shell.activateById(tab.id);
    },
    insert: (program, words) => {
      const panel = tracker.currentWidget;
      if (!panel?.model) {
        return;
      }
      const { line } = withCommand(`%%optiml ${quoted(words)}`, 'check');
      const at = panel.content.activeCellIndex + 1;
      const source = `${line}\n${program.replace(/^\n/, '')}`;
      panel.model.sharedModel.insertCell(at, { cell_type: 'code', source });
      panel.content.activeCellIndex = at;
    }
  };
}

/** A side panel of the runs of the home. */
export const runs: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'A side panel of runs, live and past.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ILayoutRestorer, ICommandPalette, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    registry: ISettingRegistry | null
  ) => {
    const panel = new RunsPanel(pageOf(app, tracker));
    void registry?.load(ID).then(settings => {
      const take = (): void => {
        panel.last = settings.get('last').composite as number;
      };
      settings.changed.connect(take);
      take();
    });
    panel.title.icon = runsIcon;
    panel.title.caption = 'OptiML runs';
    app.shell.add(panel, 'left', { rank: 600 });
    restorer?.add(panel, panel.id);
    tracker.currentChanged.connect(() => {
      if (panel.isVisible) {
        void panel.refresh();
      }
    });
    app.commands.addCommand(SHOW, {
      label: 'Show OptiML Runs',
      caption: 'Runs of this home: look at them, compare, insert',
      icon: runsIcon,
      execute: () => {
        app.shell.activateById(panel.id);
      }
    });
    palette?.addItem({ command: SHOW, category: 'OptiML' });
  }
};
