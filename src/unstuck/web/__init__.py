"""The dashboard: a page that speaks to the HTTP API and to nothing else. `static/` is what browsers get, as it is."""
