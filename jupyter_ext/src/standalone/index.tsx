/** The workspace at the master's own address. */

import '../workspace/styles/workspace.css';
import '../shared/view.css';
import './page.css';

import { Page } from './page';
import { browserStore, Session } from './session';
import { PageTheme } from './theme';

new Page(
  document.getElementById('root')!,
  window,
  new Session(browserStore(window)),
  new PageTheme(window)
).start();
