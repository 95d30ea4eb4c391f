// Pages that are opened as files may not be fetched, so that results of the search come without excerpts there.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
