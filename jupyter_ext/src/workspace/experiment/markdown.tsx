/** Markdown as elements. HTML in it is shown as the text that it is, so that nothing of it can ever run. */

import { lexer, type Token, type Tokens } from 'marked';
import type { ComponentChildren } from 'preact';

/** Schemes that a link may have; all else stays text. */
const SAFE = /^(https?:|mailto:|#|\/)/i;

export function Markdown({ text }: { text: string }) {
  return <div class="det-exp-markdown">{blocks(lexer(text))}</div>;
}

/** Whether a link may be followed: an address of the web or of this page, never a script. */
export function isSafe(address: string): boolean {
  return SAFE.test(address.trim());
}

function blocks(tokens: readonly Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token, index) => (
    <Block key={index} token={token} />
  ));
}

function inlines(tokens: readonly Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token, index) => (
    <Inline key={index} token={token} />
  ));
}

function Block({ token }: { token: Token }) {
  switch (token.type) {
    case 'heading': {
      const { depth, tokens } = token as Tokens.Heading;
      // The page has a first and second level of its own.
      const Tag = depth <= 1 ? 'h2' : depth === 2 ? 'h3' : 'h4';
      return <Tag>{inlines(tokens)}</Tag>;
    }
    case 'paragraph':
      return <p>{inlines((token as Tokens.Paragraph).tokens)}</p>;
    case 'blockquote':
      return (
        <blockquote>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>
      );
    case 'code':
      return <pre tabIndex={0}>{(token as Tokens.Code).text}</pre>;
    case 'hr':
      return <hr />;
    case 'list':
      return <List list={token as Tokens.List} />;
    case 'table':
      return <Table table={token as Tokens.Table} />;
    case 'space':
    case 'def':
      return null;
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return <>{tokens ? inlines(tokens) : entities(text)}</>;
    }
    case 'html':
      return <p>{token.raw}</p>;
    default:
      return <Inline token={token} />;
  }
}

function List({ list }: { list: Tokens.List }) {
  const items = list.items.map((item, index) => (
    <li key={index} class={item.task ? 'det-exp-task' : undefined}>
      {item.task && (
        <input
          type="checkbox"
          disabled
          checked={item.checked ?? false}
          aria-label={item.checked ? 'done' : 'to do'}
        />
      )}
      {blocks(item.tokens.filter(({ type }) => type !== 'checkbox'))}
    </li>
  ));
  return list.ordered ? (
    <ol start={typeof list.start === 'number' ? list.start : 1}>{items}</ol>
  ) : (
    <ul>{items}</ul>
  );
}

function Table({ table: { header, rows } }: { table: Tokens.Table }) {
  return (
    <table class="det-grid">
      <thead>
        <tr>
          {header.map((cell, index) => (
            <th key={index} scope="col">
              {inlines(cell.tokens)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            {row.map((cell, at) => (
              <td key={at}>{inlines(cell.tokens)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Inline({ token }: { token: Token }) {
  switch (token.type) {
    case 'strong':
      return <strong>{inlines((token as Tokens.Strong).tokens)}</strong>;
    case 'em':
      return <em>{inlines((token as Tokens.Em).tokens)}</em>;
    case 'del':
      return <del>{inlines((token as Tokens.Del).tokens)}</del>;
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>;
    case 'br':
      return <br />;
    case 'link': {
      const { href, tokens } = token as Tokens.Link;
      return isSafe(href) ? (
        <a href={href} rel="noopener noreferrer nofollow" target="_blank">
          {inlines(tokens)}
        </a>
      ) : (
        <span>{inlines(tokens)}</span>
      );
    }
    case 'image': {
      // A picture from elsewhere would tell its server who reads this.
      const { href, text } = token as Tokens.Image;
      return isSafe(href) ? (
        <a href={href} rel="noopener noreferrer nofollow" target="_blank">
          {text || href}
        </a>
      ) : (
        <span>{text}</span>
      );
    }
    case 'escape':
      return <>{(token as Tokens.Escape).text}</>;
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return <>{tokens ? inlines(tokens) : entities(text)}</>;
    }
    default:
      return <>{token.raw}</>;
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&nbsp;': '\u00a0'
};

function entities(text: string): string {
  return text.replace(
    /&(amp|lt|gt|quot|#39|nbsp);/g,
    found => ENTITIES[found] ?? found
  );
}
