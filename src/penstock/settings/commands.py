"""The commands: what each is for, its arguments, and the settings that it takes. Imports nothing large.

Groups that only a command has are declared here. Annotations are read when a class is used, so this module
has no postponed ones.
"""

from typing import Annotated, Final, Literal

from penstock.settings.command_line import Command
from penstock.settings.conversion import ConvertOptions, RawFiles
from penstock.settings.groups import ColumnTypes, MissingColumns, ReadOptions, Roles, StoreCache, TextFiles
from penstock.settings.kinds import File, Integer, Kind, PathName, SplitName, Strings, Whole
from penstock.settings.loading import BenchOptions
from penstock.settings.model import ModelOptions
from penstock.settings.prediction import EvaluateCall, ExportOptions, PredictOptions, ReportOptions
from penstock.settings.setting import Settings, setting
from penstock.settings.training import Ensemble, RunOutput, TrainOptions, Workers

Output = Annotated[str, PathName("FILE")]
Folder = Annotated[str, PathName("FOLDER")]
Function = Annotated[str, PathName("FILE:FUNCTION", "FILE:FUNCTION, such as model.py:build", is_local=True)]

_RECORDS: Final = {"PATH": "TFRecord files, a quoted glob pattern, or a folder"}
_RUN: Final = "run folder, written by 'penstock train'; may be in an object store"


class Planning(Settings, title="plan"):
    """A plan instead of a conversion."""

    prints_plan: bool = setting(
        "Print an editable plan for the columns, and write nothing.", default=False, flag="--plan"
    )


class InspectOptions(Settings, title="inspection"):
    """Parts of the data to show."""

    head: Whole = setting("Also show the first N records.", default=0, usual="none")
    compare: Annotated[str, PathName("OLD")] | None = setting(
        "Only print the differences from the schema of data set OLD; exit status 1 if its records cannot be "
        "read with the schema of PATH.",
        default=None,
    )
    tf: bool = setting(
        "Only print Python code that parses the records with TensorFlow; with --pipeline, code that makes "
        "batches.",
        default=False,
    )
    code: Literal["keras", "tf", "torch"] | None = setting(
        "Only print a complete training script for the data: with Penstock and Keras or torch, or with "
        "TensorFlow alone; see --target.",
        default=None,
    )
    pipeline: File | None = setting(
        "With --tf: a fitted pipeline, as saved by Pipeline.save, to include as TensorFlow operations.",
        default=None,
    )
    split: SplitName | None = setting(
        "With --pipeline: split that the code reads.", default=None, usual="train, or the only one"
    )

    def validate(self) -> None:
        """Refuse several things to print alone, and options of another one."""
        self.refuse_together("compare", "tf", "code")
        if self.pipeline is not None and not self.tf:
            raise self.refuse("pipeline", "`tf=True` as well")
        if self.split is not None and self.pipeline is None:
            raise self.refuse("split", "`pipeline=FILE` as well")


class Server(Settings, title="server"):
    """Where the viewer is reached."""

    port: Annotated[int, Integer(most=65_535)] = setting("Port; 0 for any free one.", default=8765)
    host: Annotated[str, Kind("NAME", "a name or an address")] = setting(
        "Name or address to listen on; others than the default need the token in the printed address.",
        default="127.0.0.1",
        usual="127.0.0.1, which only this machine can reach",
    )
    allowed_host: Annotated[str | tuple[str, ...], Strings("NAME", None)] = setting(
        "Answer requests under this name of the machine, too, such as vm.example.com; with the token; "
        "repeatable.",
        default=(),
    )


class RepairOutput(Settings, title="output"):
    """Where repaired files are written."""

    out: Folder | None = setting("Output folder, instead of OUT.", default=None)
    overwrite: bool = setting("Replace existing files.", default=False)


class Config(Settings, title=RunOutput.title):
    """A file with settings."""

    config: File | None = setting("Settings in the form of run.yaml; options override them.", default=None)


class Folds(Settings, title=Ensemble.title):
    """Cross-validation."""

    folds: Annotated[int, Integer(least=2, most=100)] | None = setting(
        "Cross-validate: N runs, each scored on the part it leaves out.", default=None
    )


class OwnModel(Settings, title=ModelOptions.title):
    """A model of the user, or the one that would be built."""

    model: Function | None = setting(
        "Train your own model, returned by a function in a Python file.", default=None
    )
    show_model: bool = setting("Print the model without training it.", default=False)
    write_model: File | None = setting(
        "Write the model as editable Keras code without training it.", default=None
    )

    def validate(self) -> None:
        """Refuse to write the code of a model that has its own."""
        self.refuse_together("model", "write_model")


class ModelOfRun(Settings, title="own models"):
    """The model of a run that trained one of the user."""

    model: Function | None = setting(
        "Function that returns the model, if the run trained your own.", default=None
    )


class PredictionFile(Settings, title="output"):
    """Where predictions are written."""

    out: Output | None = setting(
        "Write a .parquet, .csv or .jsonl file, also to an object store, not stdout.", default=None
    )


class CheckData(Settings, title=ExportOptions.title):
    """Data for the check of an export."""

    check_data: Annotated[str | tuple[str, ...], Strings("DATA", None)] = setting(
        "Data for the check, as for 'penstock predict'; repeatable.", default=(), usual="the data of the run"
    )


class ReportFile(Settings, title=ReportOptions.title):
    """Where a report is written, and what a run is evaluated on."""

    out: Output | None = setting("HTML file to write.", default=None, usual="report.html")
    data: Annotated[str, PathName("DATASET")] | None = setting(
        "Data to evaluate a run on.", default=None, usual="the data of the run"
    )


class Tour(Settings, title="tour"):
    """What the demo shows."""

    out: Folder | None = setting("Folder to write.", default=None, usual="a new folder for temporary files")
    data: bool = setting(
        "Train no model; instead load batches, resume, measure speed, skip a bad row, damage and repair: "
        "takes seconds and needs no framework.",
        default=False,
    )
    full: bool = setting("Show both.", default=False)

    def validate(self) -> None:
        """Refuse one half and both."""
        self.refuse_together("data", "full")


CONVERT: Final = Command(
    name="convert",
    summary="make a data set from CSV, Parquet, images, TFRecords, …",
    description="""\
Convert raw data to TFRecord shards with a manifest: checked, split without leakage, shuffled, with
statistics, and readable by every TFRecord reader. SOURCE is a CSV, TSV, Parquet, JSON-lines or Arrow file,
several files, a glob pattern, a folder of images, or TFRecords and data sets, which are written again; also
an Excel or .zip file with a table, .tar files of WebDataset samples, duckdb:///FILE?query=SQL, or - for
standard input. OUT is a folder, which appears when it is complete, or a .parquet file, to convert a data set
back to a table.""",
    example="penstock convert pets.csv pets/ --image photo --target adopted",
    usage="SOURCE [SOURCE ...] OUT",
    arguments={"SOURCE": "data to convert", "OUT": "output folder, or a .parquet file"},
    least=0,
    settings=(Planning, ColumnTypes, Roles, ConvertOptions),
    main="--target --id --image --drop --plan --split --group --on-error --overwrite --resume",
    module="penstock.cli.convert",
    extra="convert",
    reads_stdin=True,
)
INSPECT: Final = Command(
    name="inspect",
    summary="show what TFRecord files and tables contain",
    description="""\
Show what TFRecord files from any writer contain: fields with type, lengths and an example, counts, sizes and
compression. For a folder with a manifest, also show how it was made, and statistics of its fields. Reads
every byte once, except with --compare and --pipeline. Of raw data (CSV, Excel, images, and so on), show what
its columns would become, from the first rows. Exit status 1 if a file is damaged or not a TFRecord file.""",
    example="penstock inspect pets/ --head 2 --tensor mask:64x64:uint8 --target adopted",
    usage="PATH [PATH ...]",
    arguments={
        "PATH": "TFRecord files, raw data as for convert, a quoted glob pattern, a folder, or - for stdin"
    },
    settings=(InspectOptions, ReadOptions, ColumnTypes, Roles, TextFiles),
    main="--head --target --image --text --tensor --code --tf --compare",
    module="penstock.cli.inspect",
    reads_stdin=True,
)
VIEW: Final = Command(
    name="view",
    summary="browse a data set, TFRecord files or a run in a web browser",
    description="""\
Show records in a local web page: pictures, texts, numbers and small charts, as cards or as a table; filter,
search, sort, go to a record, see its bytes and checksums, and statistics of every field. Works at once for
data of any size: records are read when they are shown. For a run, also show its predictions and mistakes.
Prints the address to open, and ends with Ctrl-C.""",
    example="penstock view pets/ --port 8765",
    usage="PATH [PATH ...]",
    arguments={"PATH": "a data set, TFRecord files, a quoted glob pattern, or the folder of a run"},
    settings=(Server, ModelOfRun, ReadOptions, ColumnTypes, Roles),
    main="--port --host --target --image --tensor --model",
    module="penstock.cli.view",
    extra="view",
)
VERIFY: Final = Command(
    name="verify",
    summary="check every byte of TFRecord files",
    description="""\
Check every byte of TFRecord files: the compressed stream, both CRCs of each record, and whether each payload
parses, if the payloads are Examples. For a folder with a manifest, also check the size, record count and
SHA-256 of every shard, and its indexes. Prints one line per fault with the file, the number of the record and
its byte offset (in the decompressed bytes of a compressed file). Exit status 1 if there are faults.""",
    example="penstock verify pets/",
    usage="PATH [PATH ...]",
    arguments=_RECORDS,
    settings=(ReadOptions,),
    module="penstock.cli.verify",
)
REPAIR: Final = Command(
    name="repair",
    summary="copy the intact records of damaged files",
    description="""\
Write the intact records of TFRecord files to files of the same name and compression in another folder, OUT.
The input is never changed. Damaged bytes are kept in OUT/quarantine, one file per damaged file, and
OUT/quarantine/losses.jsonl lists what was lost and why. Records that the manifest lists but no file contains
also count as lost. Exit status 1 if there are any, or if a file could not be repaired.""",
    example="penstock repair pets/ repaired/",
    usage="PATH [PATH ...] OUT",
    arguments={**_RECORDS, "OUT": "output folder, different from the input; created if missing"},
    settings=(RepairOutput, ReadOptions),
    module="penstock.cli.repair",
)
TRAIN: Final = Command(
    name="train",
    summary="train a model on a data set, or on raw data",
    description="""\
Train a multi-input Keras model, built for the data or your own. DATA is a data set or TFRecords, or raw data
(a CSV, Parquet or JSON-lines file, or a folder of images), which is first converted into the run folder. An
interrupted run continues with --resume, and ends with the same weights. The run folder contains run.yaml,
pipeline.json, weights.safetensors, history.csv and state.json. Use it with 'penstock evaluate' and 'penstock
predict'.""",
    example="penstock train pets.csv --target adopted --out runs/pets",
    usage="DATA [DATA ...] [--out RUN]",
    arguments={"DATA": "a data set, TFRecords, or raw data"},
    least=0,
    settings=(
        RunOutput,
        Config,
        TrainOptions,
        Ensemble,
        Folds,
        OwnModel,
        ModelOptions,
        Workers,
        ColumnTypes,
        Roles,
        RawFiles,
        StoreCache,
    ),
    main="--target --id --drop --out --epochs --batch-size --parts --seed --model --resume",
    module="penstock.cli.train",
    keras="penstock.jobs.train.train",
    reads_stdin=True,
)
EVALUATE: Final = Command(
    name="evaluate",
    summary="score a trained model, and measure which inputs matter",
    description="""\
Predict on a split that the model was not trained on, and print scores with 95 % confidence intervals, scores
per class, the importance of each input (how much the main score drops when its values are shuffled among the
records), and the worst mistakes with their inputs. DATA is labelled data: a data set or TFRecords, or raw
data with the columns of the targets; by default, the data set of the run. Rows without a label are left out.
All records have the same weight.""",
    example="penstock evaluate runs/pets labelled.csv --slice breed",
    usage="RUN [DATA ...]",
    arguments={"RUN": _RUN, "DATA": "labelled data; by default the data set of the run"},
    settings=(EvaluateCall, ModelOfRun),
    main="--split --slice --mistakes --no-importance --bootstrap --batch-size --on-error --model",
    module="penstock.cli.evaluate",
    keras="penstock.training.run_model",
    reads_stdin=True,
)
PREDICT: Final = Command(
    name="predict",
    summary="predict on new data with a trained model",
    description="""\
Predict on new data with the model and the preprocessing of a run. DATA is a CSV, TSV, Parquet, JSON-lines or
Arrow file, several files or a glob pattern; images, or a folder of images; or a data set or TFRecords, with
--split. It needs the columns that the model was trained on, except the targets. The output has one row per
row of DATA, in order: its id, its number from 0 or the path of the image, then for each target the label and
the probabilities, or the number. Without --out it is printed as CSV.""",
    example="penstock predict runs/pets new_pets.csv --out adopted.parquet --keep name",
    usage="RUN DATA [DATA ...]",
    arguments={"RUN": _RUN, "DATA": "data to predict on"},
    least=2,
    settings=(PredictionFile, PredictOptions, ModelOfRun),
    main="--out --overwrite --keep --split --on-error --batch-size --model",
    module="penstock.cli.predict",
    extra="convert",
    reads_stdin=True,
)
EXPORT: Final = Command(
    name="export",
    summary="write a trained model with its preprocessing as a folder to ship",
    description="""\
Write the model of a run, with its preprocessing, as a folder that is used elsewhere: a bundle for
ps.Predictor, an ONNX file for ps.Predictor without Keras, or a SavedModel that takes raw values by name and
is served by TensorFlow alone. Then compare it with the run on 256 rows, in a new process, and print the
largest difference of each output. If an output differs by more than 1e-5 (1e-3 where TensorFlow decodes
images), nothing is written.""",
    example="penstock export runs/pets served/pets/1 --format saved_model",
    usage="RUN OUT",
    arguments={"RUN": _RUN, "OUT": "folder to write, also in an object store"},
    least=2,
    most=2,
    settings=(ExportOptions, CheckData, ModelOfRun),
    module="penstock.cli.export",
    keras="penstock.training.run_model",
)
REPORT: Final = Command(
    name="report",
    summary="write a report about a data set or a run as one HTML page",
    description="""\
Write one HTML file that needs no network and has no scripts. Of a data set: distributions of all fields,
missing values, balance and drift between splits, sample records with pictures, duplicates, and warnings, such
as a column that determines the target. Of a run also: scores, curves, calibration, the importance of inputs,
the worst slices and mistakes, where the time went, and the model as a diagram. Figures about the data come
from a sample, whose size the page states. With --json the figures are printed as JSON, and the file is
written only if --out names it.""",
    example="penstock report runs/pets --out pets.html",
    usage="SOURCE [SOURCE ...]",
    arguments={"SOURCE": "a data set, TFRecord files, or a run folder"},
    settings=(ReportFile, ReportOptions, MissingColumns, ModelOfRun),
    module="penstock.cli.report",
    extra="report",
)
BENCH: Final = Command(
    name="bench",
    summary="measure how fast a data set loads, and find the bottleneck",
    description="""\
Load a data set as training does, shuffled and transformed, and report records and megabytes per second, the
time spent on reading, decoding and transforming, how long the consumer waits, which of these is the
bottleneck, and what to change. The first epoch is reported separately from later ones, which find the files
in memory. Without --consumer-seconds the consumer does nothing: this is the speed of the loader alone.""",
    example="penstock bench pets/ --batch-size 256 --seconds 10 --consumer-seconds 0.02",
    usage="PATH [PATH ...]",
    arguments=_RECORDS,
    settings=(BenchOptions, ReadOptions, ColumnTypes, Roles),
    main="--split --batch-size --shuffle --no-shuffle --threads --cache --seconds --consumer-seconds",
    module="penstock.cli.bench",
)
DEMO: Final = Command(
    name="demo",
    summary="go from raw files to a trained model and a report, in about a minute",
    description="""\
Write a table of flowers with a photo of each, convert it to a data set, inspect it, train a model on all
inputs, evaluate it, predict new rows, and compare it with models that see one kind of input. Each command
is printed before its output. The program is penstock/examples/flowers.py in the installed package.""",
    example="penstock demo --out flowers-demo",
    usage="",
    arguments={},
    least=0,
    most=0,
    settings=(Tour,),
    module="penstock.cli.demo",
)
COMMANDS: Final = {
    each.name: each
    for each in (
        CONVERT,
        INSPECT,
        VIEW,
        VERIFY,
        REPAIR,
        TRAIN,
        EVALUATE,
        PREDICT,
        EXPORT,
        REPORT,
        BENCH,
        DEMO,
    )
}
