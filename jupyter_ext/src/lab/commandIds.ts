/** Names of the commands; the schema of the settings has them too. */
export const CommandIds = {
  submit: 'det-native:submit-notebook',
  workspace: 'det-native:open-workspace',
  show: 'det-native:show-experiments',
  open: 'det-native:open-experiment',
  executed: 'det-native:open-executed-notebook',
  start: 'det-native:start-master',
  stop: 'det-native:stop-experiment',
  pause: 'det-native:pause-experiment',
  resume: 'det-native:resume-experiment',
  kill: 'det-native:kill-experiment'
} as const;
