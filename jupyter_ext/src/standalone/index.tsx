/** The workspace at the master's own address. */

import '../workspace/styles/workspace.css';
import '../shared/view.css';
import './page.css';

import { downloadFrom } from '../shared/download';
import { WorkspaceElement } from '../workspace/app/workspace';
import { HashNavigation } from './navigation';
import { MasterTransport } from './masterTransport';

const transport = new MasterTransport(location.origin);
const workspace = new WorkspaceElement(document.getElementById('root')!, {
  kind: 'page',
  transport,
  navigation: new HashNavigation(window),
  download: downloadFrom(transport),
  setTitle: title => (document.title = `${title} · det_native`)
});

const follow = () => (document.hidden ? workspace.pause() : workspace.resume());
document.addEventListener('visibilitychange', follow);
follow();
