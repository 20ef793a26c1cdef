import type { Kernel } from '@jupyterlab/services';
import type { JSONObject } from '@lumino/coreutils';

const TARGET = 'optiml';
const SCHEMA = 1;
const SECONDS = 60;

/** What newer releases of JupyterLab say of a comm. */
interface WithSubshell extends Kernel.IComm {
  readonly subshellStarted?: Promise<void>;
}

interface Answer {
  readonly schema: number;
  readonly error?: string;
}

/**
 * Ask the magic in a kernel: one comm a question. Where the front end has subshells it is heard
 * while a cell runs. Throws an Error whose message is for the user.
 */
export async function ask<T>(kernel: Kernel.IKernelConnection, question: JSONObject): Promise<T> {
  const comm = kernel.createComm(TARGET) as WithSubshell;
  if (kernel.supportsSubshells && String(comm.commsOverSubshells) !== 'disabled') {
    await comm.subshellStarted; // else the question waits for the cell that runs
  }
  const answer = await new Promise<Answer>((resolve, reject) => {
    const fail = (why: string): void => {
      reject(new Error(why));
    };
    const late = setTimeout(() => {
      fail('The kernel is busy: it answers when its cell ends.');
    }, 1000 * SECONDS);
    comm.onMsg = message => {
      clearTimeout(late);
      resolve(message.content.data as unknown as Answer);
    };
    comm.onClose = () => {
      clearTimeout(late);
      fail('The magic is not loaded in this kernel: run %load_ext optiml_magic.');
    };
    comm.open({ ...question, schema: SCHEMA });
  });
  if (answer.schema !== SCHEMA) {
    throw new Error('The kernel has another release of optiml-magic: reload the page.');
  }
  if (answer.error !== undefined) {
    throw new Error(answer.error);
  }
  return answer as T & Answer;
}
