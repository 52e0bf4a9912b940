// Ends a flood: this document, and its frames of the same site, show no more dialogs and open no more windows.
(() => {
  const silence = (view) => {
    try {
      view.alert = () => undefined;
      view.confirm = () => false;
      view.prompt = () => null;
      view.open = () => null;
      view.onbeforeunload = null;
      for (let i = 0; i < Math.min(view.length, 100); i++) silence(view[i]);
    } catch {
      // A frame of another site.
    }
  };
  silence(window);
})();
