module.exports = {
  title: 'Lamp',
  url: 'https://lamp.example',
  baseUrl: '/',
  onBrokenLinks: 'warn',
  onBrokenAnchors: 'warn',
  presets: [['classic', {docs: {routeBasePath: '/'}, blog: false, pages: false}]],
};
