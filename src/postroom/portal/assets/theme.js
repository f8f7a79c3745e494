"use strict";
// Before anything is drawn: the theme and the rail as this browser left them.
for (const name of ["theme", "rail"]) {
  const value = localStorage.getItem(`postroom.${name}`);
  if (value) document.documentElement.dataset[name] = value;
}
