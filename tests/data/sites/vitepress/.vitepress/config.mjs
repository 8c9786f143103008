export default {
  title: 'Lamp',
  ignoreDeadLinks: true,
  markdown: { math: false },
  themeConfig: { search: undefined },
}
