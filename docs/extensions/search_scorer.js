// The order of search results: titles of pages, then names of the reference, then words in the text. Pages on
// design and on the project come last among equals.
var Scorer = {
  score: ([page, , , , score]) => (/^(design|project)\//.test(page) ? score - 4 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 3, 1: 0, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
