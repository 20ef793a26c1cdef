import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { highlighting } from './plugins/highlighting.js';
import { runs } from './plugins/runs.js';
import { toolbar } from './plugins/toolbar.js';

const plugins: JupyterFrontEndPlugin<void>[] = [highlighting, toolbar, runs];

export default plugins;
