import { LabIcon } from '@jupyterlab/ui-components';

function icon(name: string, path: string): LabIcon {
  const svgstr =
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">' +
    `<path class="jp-icon3" fill="#616161" d="${path}"/></svg>`;
  return new LabIcon({ name: `optiml-magic:${name}`, svgstr });
}

export const checkedIcon = icon('check', 'M9 16.2 4.8 12l-1.4 1.4L9 19 21 7l-1.4-1.4z');
export const optimizeIcon = icon('optimize', 'M13 2 4 14h6l-1 8 9-12h-6z');
export const annotateIcon = icon(
  'annotate',
  'M3 5h4v2H3zm6 0h12v2H9zM3 11h4v2H3zm6 0h9v2H9zM3 17h4v2H3zm6 0h12v2H9z'
);
export const stopIcon = icon('stop', 'M6 6h12v12H6z');
export const runsIcon = icon('runs', 'M4 20V10h4v10zm6 0V4h4v16zm6 0v-7h4v7z');
