import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const ADDRESS =
  'An address of the master is the first argument of api.GET and the like, or of addressOf: there the compiler knows it.';
/** Where a path of the master's interface is checked by its type. */
const TYPED =
  ':matches(CallExpression[callee.property.name=/^(GET|POST|PUT|PATCH|DELETE)$/], CallExpression[callee.name="addressOf"], ' +
  'TSSatisfiesExpression, TSIndexedAccessType TSLiteralType, VariableDeclarator[id.name="path"], ' +
  'TSAsExpression[typeAnnotation.typeName.name="const"])';

export default tseslint.config(
  {
    ignores: [
      'lib/**',
      'labextension/**',
      'node_modules/**',
      'det_jupyter/**',
      'src/generated/**',
      '*.config.*'
    ]
  },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: true,
        tsconfigRootDir: import.meta.dirname
      }
    },
    rules: {
      '@typescript-eslint/explicit-member-accessibility': 'off',
      '@typescript-eslint/naming-convention': [
        'error',
        { selector: 'interface', format: ['PascalCase'] },
        { selector: 'typeLike', format: ['PascalCase'] }
      ],
      '@typescript-eslint/no-unused-vars': ['error', { args: 'none' }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      // As JupyterLab has them; what differs, and why: docs/decisions/0010-rules-of-the-front-end.md.
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      'id-match': ['error', '^[a-zA-Z_]+[a-zA-Z0-9_]*$'],
      'sort-imports': [
        'error',
        {
          ignoreCase: true,
          ignoreDeclarationSort: true,
          memberSyntaxSortOrder: ['none', 'all', 'multiple', 'single'],
          allowSeparatedGroups: false
        }
      ],
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'max-lines': ['error', { max: 400, skipBlankLines: true }],
      'no-restricted-properties': [
        'error',
        {
          property: 'innerHTML',
          message: 'What comes from outside is text: use textContent.'
        },
        {
          property: 'outerHTML',
          message: 'What comes from outside is text: use textContent.'
        },
        {
          property: 'insertAdjacentHTML',
          message: 'What comes from outside is text: use append.'
        }
      ],
      'prefer-arrow-callback': 'error'
    }
  },
  {
    files: ['src/**/*'],
    ignores: ['src/shared/paths.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: `:not(${TYPED}) > Literal[value=/^\\/?api\\/v1\\b/]`,
          message: ADDRESS
        },
        {
          selector: `:not(${TYPED}) > TemplateLiteral > TemplateElement[value.raw=/^\\/?api\\/v1\\b/]`,
          message: ADDRESS
        },
        {
          selector: 'Literal[value=/^\\/?master\\//]',
          message: ADDRESS
        },
        {
          selector: 'TemplateElement[value.raw=/^\\/?(master|local)\\//]',
          message: ADDRESS
        }
      ]
    }
  },
  {
    // Plain JavaScript is in no TypeScript project: it is read without types.
    files: ['**/*.{js,mjs}'],
    ...tseslint.configs.disableTypeChecked
  },
  {
    files: ['src/shared/**/*.ts', 'src/workspace/**/*', 'src/standalone/**/*'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: ['@jupyterlab/*', '@lumino/*', '**/lab/*'],
              message:
                'The widget and the page at the master have no JupyterLab.'
            }
          ]
        }
      ]
    }
  }
);
