import DefaultTheme from 'vitepress/theme';
import { h } from 'vue';
import dark from '../../screens/overview-dark.png';
import light from '../../screens/overview-light.png';
import './style.css';

const ALT = 'The overview in the admin panel: problems to fix, and delivery statistics';

const screenshot = () =>
  h('div', { class: 'home-screen' }, [
    h('img', { src: light, alt: ALT, class: 'only-light', width: 1440, height: 900 }),
    h('img', { src: dark, alt: ALT, class: 'only-dark', width: 1440, height: 900 }),
  ]);

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'home-hero-after': screenshot }),
};
