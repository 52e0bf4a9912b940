"use strict";
// Forgets everything about this visitor.

document.cookie = "consent=; path=/; max-age=0";
shop.change((now) => { for (const key of Object.keys(now)) now[key] = shop.NOTHING[key]; });
