"""Settings of the documentation site, which `make docs` builds with Sphinx.

Pages stay where they are, in `docs/`; the tables of contents in `index.md` group them. Nothing is downloaded
while the site is built, and its pages load nothing from the network.
"""

from __future__ import annotations

import sys
from importlib.metadata import version as find_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "Penstock"
version = release = find_version("penstock")
project_copyright = "the authors of Penstock"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "myst_nb",
    "command_reference",
    "docstring_markup",
    "example_scripts",
    "repository_links",
]
exclude_patterns = ["extensions", "static", "pictures", "screenshots", "**/.ipynb_checkpoints"]

# Every reference must lead somewhere: `make docs` makes errors of warnings. Types of other packages have no
# page here, and their own documentation is not downloaded.
nitpicky = True
# Types that a user never names are not in the reference: the fitted state of transforms, paths in object
# stores, parts of the facts of a run, groups of options, and what loaders pass to their threads.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!penstock\.).*"),
    (r"py:class", r"penstock\.transform\.(\w+\.\w+Fit|assembly\.Assembly)"),
    (r"py:class", r"penstock\.storage\.store_path\.StorePath"),
    (r"py:class", r"penstock\.read\.bitmap\.Bitmap"),
    (r"py:class", r"penstock\.training\.run_(facts|config)\.\w+"),
    (r"py:class", r"penstock\.settings\.(conversion|groups)\.\w+"),
    (r"py:class", r"penstock\.score\.intervals\.CalibratedError"),
    (r"py:class", r"penstock\.batch\.(maker\.(MadeRows|Transforming)|batch_plan\.Ticket)"),
]

# Links to headings of other pages, as on GitHub.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]

# Notebooks are stored without outputs, so that none is ever out of date: the site shows what they print when
# it is built. `-D nb_execution_mode=off` leaves that out.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "remove"  # messages of TensorFlow about the CPU at hand

autodoc_default_options = {"member-order": "bysource"}
autodoc_class_signature = "mixed"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = False
python_maximum_signature_line_length = 88
python_display_short_literal_types = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_attr_annotations = True
add_module_names = False
# Options have their defaults beside their descriptions; users make neither errors nor what functions return.
hidden_signatures = (
    *("penstock.options.", "penstock.errors."),
    *("penstock.Dataset", "penstock.dataset.Split", "penstock.Loader", "penstock.Pipeline", "penstock.Run"),
    *("penstock.batch.build.Mixture", "penstock.batch.loader.Iteration", "penstock.batch.stats.LoaderStats"),
    *("penstock.decode.sample_view.SampleList", "penstock.decode.reader.ColumnBlock"),
    *("penstock.batch.supply.RecordLocation", "penstock.schema.comparison.Comparison"),
    *("penstock.score.evaluation.Evaluation", "penstock.score.evaluation.SliceScores"),
    *("penstock.score.mistakes.Mistake", "penstock.jobs.train.cross_validation.folds.CrossValidation"),
    *("penstock.training.validation_choice.ValidationChoice", "penstock.training.progress.Watcher"),
    *("penstock.model.task.Task", "penstock.model.keras_predictor.KerasPredictor"),
    *("penstock.jobs.predict.predictions.Predictions", "penstock.jobs.export.export.Export"),
)

html_theme = "furo"
html_title = "Penstock"
html_static_path = ["static"]
html_css_files = ["penstock.css"]
html_logo = "static/penstock.svg"
html_favicon = "static/penstock.svg"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
html_js_files = ["penstock.js"]
html_search_scorer = str(Path(__file__).parent / "extensions" / "search_scorer.js")
smartquotes = False  # which would make dashes of the hyphens of options
pygments_style = "default"
pygments_dark_style = "github-dark"

default_role = "name"  # of text in single backticks in docstrings
