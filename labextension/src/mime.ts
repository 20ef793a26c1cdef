import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { TRAJECTORY } from './saved.js';
import { view } from './viewer.js';

/** A saved run as a document or an output; it needs no kernel. */
class RunRenderer extends Widget implements IRenderMime.IRenderer {
  constructor() {
    super();
    this.addClass('optiml-renderer');
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.node.replaceChildren(view(model.data[TRAJECTORY]));
    return Promise.resolve();
  }
}

const extension: IRenderMime.IExtension = {
  id: 'optiml-magic:trajectory',
  description: 'Shows saved runs.',
  rendererFactory: {
    safe: true,
    mimeTypes: [TRAJECTORY],
    createRenderer: () => new RunRenderer()
  },
  dataType: 'string',
  fileTypes: [
    {
      name: 'optiml-run',
      displayName: 'OptiML run',
      extensions: ['.optiml.json'],
      mimeTypes: [TRAJECTORY],
      fileFormat: 'text'
    }
  ],
  documentWidgetFactoryOptions: {
    name: 'OptiML run',
    primaryFileType: 'optiml-run',
    fileTypes: ['optiml-run'],
    defaultFor: ['optiml-run']
  }
};

export default extension;
